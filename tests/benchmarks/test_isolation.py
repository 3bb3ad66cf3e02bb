"""Runs in separate processes return values, faults, limits and memory."""

import os
import signal

import numpy as np
import pytest

from benchmarks.isolation import Progress, isolate

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def endless(progress: Progress) -> int:
    done = 0
    while True:
        done += 1
        progress(done)


def failing(progress: Progress) -> int:
    progress(3)
    raise ArithmeticError("of no interest")


def hungry(progress: Progress) -> float:
    return float(np.ones(2**24).sum())  # 128 MiB


def counting(progress: Progress) -> list[int]:
    progress(2)
    return [0, 1, 2]


def test_values_are_returned_with_their_progress() -> None:
    ended = isolate(counting)
    assert (ended.value, ended.steps, ended.stopped, ended.fault) == ([0, 1, 2], 2, False, "")


@pytest.mark.slow
def test_a_run_over_its_limit_is_stopped() -> None:
    ended = isolate(endless, limit_seconds=1)
    assert (ended.value, ended.seconds, ended.stopped, ended.fault) == (None, 1, True, "")
    assert ended.steps > 0


def test_a_fault_is_named() -> None:
    ended = isolate(failing)
    assert (ended.value, ended.steps, ended.stopped, ended.fault) == (None, 3, False, "ArithmeticError")


def test_a_killed_run_does_not_count_as_stopped() -> None:
    ended = isolate(lambda progress: os.kill(os.getpid(), signal.SIGKILL))
    assert (ended.value, ended.stopped, ended.fault) == (None, False, "killed")


def test_memory_excludes_that_of_the_parent() -> None:
    table = np.ones(2**24)
    assert 128 <= isolate(hungry).peak_mib < 160
    assert isolate(lambda progress: float(table.sum())).peak_mib < 32
