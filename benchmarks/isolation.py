"""Runs each in a process of its own: its peak memory is its own, and one that takes too long is stopped.

The child is forked, so that a table is shared and not counted: memory is what the child adds to it. Time is that of
the processor, which other work on the machine hardly changes; with one thread it is what a core of one's own takes.
"""

import math
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from benchmarks.processes import peak_mib, resident_mib

T = TypeVar("T")
Progress = Callable[[int], None]
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """``value`` is None if the work was ``stopped``, or failed for the reason ``fault``; ``steps``: last progress."""

    value: T | None
    steps: int
    seconds: float
    peak_mib: float = math.nan
    stopped: bool = False
    fault: str = ""


def isolate(work: Callable[[Progress], T], limit_seconds: int | None = None) -> Ended[T]:
    """``work`` in a forked child, ended after ``limit_seconds`` of the processor. Its value comes through a pipe."""
    steps = _FORK.Value("q", 0, lock=False)  # a child that is ended would keep the lock
    receiving, sending = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_work, args=(work, limit_seconds, steps, sending))
    child.start()
    sending.close()
    try:
        value, seconds, peak, fault = receiving.recv()
    except EOFError:
        child.join()
        stopped = child.exitcode == -signal.SIGXCPU
        return Ended(None, steps.value, float(limit_seconds or 0), stopped=stopped, fault="" if stopped else "killed")
    finally:
        receiving.close()
    child.join()
    return Ended(value, steps.value, seconds, peak, fault=fault)


def _work(work: Callable[[Progress], T], limit_seconds: int | None, steps: Any, sending: Connection) -> None:
    def progress(done: int) -> None:
        steps.value = done

    if limit_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_seconds, resource.RLIM_INFINITY))
    before, start = resident_mib(), time.process_time()
    value, fault = None, ""
    try:
        value = work(progress)
    except Exception as error:  # noqa: BLE001  (a run that fails is a result: it goes into the table)
        fault = type(error).__name__
    seconds = time.process_time() - start
    sending.send((value, seconds, max(peak_mib() - before, 0.0), fault))
