"""The heartbeat keeps a lease, tells of progress, and stops a run that has lost its job."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.jobs.lifecycle import Hold, Stage
from workers.heartbeat import Beat, Heartbeat, Stopped

SOON = 10.0


def beating(answer: Callable[[], Hold]) -> tuple[Beat, list[tuple[Stage, int]], threading.Event]:
    told: list[tuple[Stage, int]] = []
    beaten = threading.Event()

    def beat(stage: Stage, steps: int) -> Hold:
        told.append((stage, steps))
        try:
            return answer()
        finally:
            beaten.set()

    return beat, told, beaten


def test_it_beats_without_progress_and_tells_of_it() -> None:
    beat, told, beaten = beating(lambda: Hold.HELD)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert beaten.wait(SOON)
        heartbeat.enter(Stage.RUNNING)
        heartbeat.step(3)
        beaten.clear()
        assert beaten.wait(SOON)
        beaten.clear()
        assert beaten.wait(SOON)
    assert told[0] == (Stage.PREPARING, 0)
    assert told[-1] == (Stage.RUNNING, 3)


def hold_of_stopped(heartbeat: Heartbeat) -> Hold:
    """What the run is stopped by, as soon as it is."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        try:
            heartbeat.check()
        except Stopped as stopped:
            return stopped.hold
        time.sleep(0.002)
    raise AssertionError("the run was never stopped")


@pytest.mark.parametrize("hold", [Hold.CANCELLED, Hold.LOST])
def test_it_stops_a_run_that_must_not_go_on(hold: Hold) -> None:
    beat, told, _ = beating(lambda: hold)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert hold_of_stopped(heartbeat) is hold
        time.sleep(0.3)  # time for thirty more beats
        with pytest.raises(Stopped) as stopped:
            heartbeat.step(1)
    assert (stopped.value.hold, len(told)) == (hold, 1)


def test_a_database_that_stays_away_costs_the_lease() -> None:
    """W10: by the time another worker may have taken the job, this one has stopped."""

    def away() -> Hold:
        raise ConnectionError

    beat, _, _ = beating(away)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=0.05) as heartbeat:
        assert hold_of_stopped(heartbeat) is Hold.LOST


def test_a_database_that_comes_back_costs_nothing() -> None:
    answers: Iterator[Hold | Exception] = iter([ConnectionError()])
    healed = threading.Event()

    def answer() -> Hold:
        found = next(answers, Hold.HELD)
        if isinstance(found, Exception):
            raise found
        healed.set()
        return found

    beat, _, _ = beating(answer)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert healed.wait(SOON)
        heartbeat.check()
