"""A worker that is being run_on_stopping_worker hands its runs over to another worker."""

import os
from datetime import timedelta

import pytest

from app.db import now
from app.jobs import repository
from app.jobs.lifecycle import MAX_ATTEMPTS, MAX_HANDOVERS
from app.queue import RUN_JOB
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import House, memory_tables
from workers.process import StopFlag
from workers.run_task import Bounds


def run_on_stopping_worker(house: House, job_id: str) -> None:
    """Run the job once on a worker that must stop at its first step."""
    house.runner(memory_tables, bounds=Bounds(stopping=lambda: True)).run(job_id)


def test_handover_counts_no_attempt(house: House, owner: rows.Key) -> None:
    """W10: the job keeps its reservation and is charged once."""
    job_id = house.job(house.ready_dataset(owner), owner)
    house.queue.sent.clear()
    for handovers in range(1, MAX_ATTEMPTS + 3):
        run_on_stopping_worker(house, job_id)
        job = house.read(job_id)
        assert (job.status, job.handovers, job.lease_until) == ("queued", handovers, None)
        assert house.charge(job_id) == "opened"
        assert house.queue.sent.pop() == (RUN_JOB, job_id)
    house.run(job_id)
    assert (house.read(job_id).status, house.charge(job_id)) == ("succeeded", "settled")
    assert len(stored(house.areas)) == len(REPRESENTATIONS)


def test_handovers_are_bounded_so_that_every_job_ends(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)
    for _ in range(MAX_HANDOVERS):
        run_on_stopping_worker(house, job_id)
    for _ in range(MAX_ATTEMPTS):
        run_on_stopping_worker(house, job_id)
        assert house.read(job_id).status == "running", "no more handovers: the lease decides"
        with house.database.write() as tx:
            repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
        house.sweeper.sweep()
    job = house.read(job_id)
    assert (job.status, job.error_code, house.charge(job_id)) == ("failed", "interrupted", "settled")


def test_cancelled_run_is_not_handed_over(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
        house.lifecycle.request_cancel(tx, job_id)
        assert not house.lifecycle.hand_over(tx, claim)


def test_job_of_another_worker_cannot_be_handed_over(house: House, owner: rows.Key) -> None:
    """W10: the older fencing token is refused."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        stale = house.lifecycle.claim(tx, job_id)
        assert stale is not None
        repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
        house.lifecycle.recover(tx, job_id)
        assert house.lifecycle.claim(tx, job_id) is not None
        assert not house.lifecycle.hand_over(tx, stale)
    assert house.read(job_id).status == "running"


@pytest.mark.parametrize("ahead", [timedelta(days=1), -timedelta(days=1)])
def test_dead_workers_lease_ends_if_the_clock_was_changed(house: House, owner: rows.Key, ahead: timedelta) -> None:
    """W10: a clock that is set back by a day does not delay a job by a day."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        house.lifecycle.claim(tx, job_id)
        repository.change(tx, job_id, lease_until=now() + ahead)
    house.sweeper.sweep()
    assert house.read(job_id).status == "queued"


def test_stop_flag_is_seen_by_a_forked_child() -> None:
    flag = StopFlag()
    assert not flag.is_set()
    asked, answer = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(asked[0], 1)
        os.write(answer[1], b"y" if flag.is_set() else b"n")
        os._exit(0)
    flag.set()
    os.write(asked[1], b"?")
    assert os.read(answer[0], 1) == b"y"
    assert os.waitpid(child, 0)[1] == 0
    for end in (*asked, *answer):
        os.close(end)
