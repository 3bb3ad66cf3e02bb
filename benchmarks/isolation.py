"""Runs each in a process of its own: its peak memory is its own, and one that takes too long is stopped.

The child is forked, so that a table is shared and not counted: memory is what the child adds to it.
"""

import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Progress = Callable[[int], None]
_FORK = multiprocessing.get_context("fork")
_MIB = 2.0**20


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """``value`` is None if the work was stopped, or failed for the reason ``fault``; ``steps`` is its last progress."""

    value: T | None
    steps: int
    seconds: float
    peak_mib: float = math.nan
    fault: str = ""


def isolated(work: Callable[[Progress], T], limit_seconds: float = math.inf) -> Ended[T]:
    """``work`` in a forked child, ended after ``limit_seconds``. What it returns travels through a pipe."""
    steps = _FORK.Value("q", 0)
    receiving, sending = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_work, args=(work, steps, sending))
    child.start()
    sending.close()
    try:
        if not receiving.poll(None if math.isinf(limit_seconds) else limit_seconds):
            return Ended(None, steps.value, limit_seconds)
        value, seconds, peak, fault = receiving.recv()
    except EOFError:
        return Ended(None, steps.value, math.nan, fault="killed")
    finally:
        if child.is_alive() and not receiving.closed:
            receiving.close()
        _end(child)
    return Ended(value, steps.value, seconds, peak, fault)


def _end(child: Any) -> None:
    child.join(timeout=0.2)
    if child.is_alive():
        child.kill()
    child.join()


def _work(work: Callable[[Progress], T], steps: Any, sending: Connection) -> None:
    def progress(done: int) -> None:
        steps.value = done

    before, start = _resident(), time.perf_counter()
    value, fault = None, ""
    try:
        value = work(progress)
    except Exception as error:  # noqa: BLE001  (a run that fails is a result: it goes into the table)
        fault = type(error).__name__
    seconds = time.perf_counter() - start
    sending.send((value, seconds, max(_peak() - before, 0.0), fault))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / _MIB


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB
