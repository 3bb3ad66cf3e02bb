"""The heartbeat renews a lease, reports progress, and stops a run without a lease."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.jobs.lifecycle import Hold, Stage
from workers.heartbeat import Beat, Heartbeat, Stopped

SOON = 10.0


def recording_beat(answer: Callable[[], Hold]) -> tuple[Beat, list[tuple[Stage, int]], threading.Event]:
    reports: list[tuple[Stage, int]] = []
    beaten = threading.Event()

    def beat(stage: Stage, steps: int) -> Hold:
        reports.append((stage, steps))
        try:
            return answer()
        finally:
            beaten.set()

    return beat, reports, beaten


def test_heartbeat_beats_without_progress_and_reports_progress() -> None:
    beat, reports, beaten = recording_beat(lambda: Hold.HELD)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert beaten.wait(SOON)
        heartbeat.enter(Stage.RUNNING)
        heartbeat.step(3)
        beaten.clear()
        assert beaten.wait(SOON)
        beaten.clear()
        assert beaten.wait(SOON)
    assert reports[0] == (Stage.PREPARING, 0)
    assert reports[-1] == (Stage.RUNNING, 3)


def hold_of_stopped(heartbeat: Heartbeat) -> Hold:
    """Wait until the run is stopped; return the state of the claim that stopped it."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        try:
            heartbeat.check()
        except Stopped as stopped:
            return stopped.hold
        time.sleep(0.002)
    raise AssertionError("the run was never stopped")


@pytest.mark.parametrize("hold", [Hold.CANCELLED, Hold.LOST])
def test_run_without_its_claim_is_stopped(hold: Hold) -> None:
    beat, reports, _ = recording_beat(lambda: hold)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert hold_of_stopped(heartbeat) is hold
        time.sleep(0.3)  # time for thirty more beats
        with pytest.raises(Stopped) as stopped:
            heartbeat.step(1)
    assert (stopped.value.hold, len(reports)) == (hold, 1)


def test_lease_is_lost_if_the_database_stays_away() -> None:
    """W10: by the time another worker may have taken the job, this one has stopped."""

    def away() -> Hold:
        raise ConnectionError

    beat, _, _ = recording_beat(away)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=0.05) as heartbeat:
        assert hold_of_stopped(heartbeat) is Hold.LOST


def test_lease_is_held_if_the_database_comes_back() -> None:
    answers: Iterator[Hold | Exception] = iter([ConnectionError()])
    healed = threading.Event()

    def answer() -> Hold:
        hold = next(answers, Hold.HELD)
        if isinstance(hold, Exception):
            raise hold
        healed.set()
        return hold

    beat, _, _ = recording_beat(answer)
    with Heartbeat(beat, every_seconds=0.01, lease_seconds=60) as heartbeat:
        assert healed.wait(SOON)
        heartbeat.check()
