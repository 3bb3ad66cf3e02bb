"""Runs in separate processes, to measure peak memory and to stop slow runs.

The child is forked, so it shares the table, which does not count: memory is the growth of the child. Time is processor
time, which other load on the machine changes little. With one thread it equals the time on an idle core.
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

from benchmarks.processes import measure_peak_mib, measure_resident_mib

T = TypeVar("T")
Progress = Callable[[int], None]
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """An ended run, with ``steps`` as its last progress.

    ``value`` is None if the run was ``stopped`` or failed with ``fault``.
    """

    value: T | None
    steps: int
    seconds: float
    peak_mib: float = math.nan
    stopped: bool = False
    fault: str = ""


def isolate(work: Callable[[Progress], T], limit_seconds: int | None = None) -> Ended[T]:
    """Runs ``work`` in a forked child, at most ``limit_seconds`` of processor time."""
    steps = _FORK.Value("q", 0, lock=False)  # a killed child would keep the lock
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
    before, start = measure_resident_mib(), time.process_time()
    value, fault = None, ""
    try:
        value = work(progress)
    except Exception as error:  # noqa: BLE001  (a run that fails is a result: it goes into the table)
        fault = type(error).__name__
    seconds = time.process_time() - start
    sending.send((value, seconds, max(measure_peak_mib() - before, 0.0), fault))
