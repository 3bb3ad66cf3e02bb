"""A worker that is being stopped gives its runs back, and they go on elsewhere at once."""

import os
from datetime import timedelta

import pytest

from app.db import now
from app.jobs import repository
from app.jobs.lifecycle import MAX_ATTEMPTS, MAX_HANDOVERS
from app.queue import RUN_JOB
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.worker import House, memory_tables
from workers.process import StopSign
from workers.run_task import Bounds


def stopped(house: House, job_id: str) -> None:
    """One delivery to a worker that is told to stop while it opens the rows."""
    house.runner(memory_tables, bounds=Bounds(stopping=lambda: True)).run(job_id)


def test_a_run_is_handed_over_and_nothing_is_counted(house: House, owner: rows.Key) -> None:
    """W10: same reservation, one charge, and no attempt is lost."""
    job_id = house.job(house.ready_dataset(owner), owner)
    house.queue.sent.clear()
    for handovers in range(1, MAX_ATTEMPTS + 3):
        stopped(house, job_id)
        job = house.read(job_id)
        assert (job.status, job.handovers, job.lease_until) == ("queued", handovers, None)
        assert house.charge(job_id) == "opened"
        assert house.queue.sent.pop() == (RUN_JOB, job_id)
    house.run(job_id)
    assert (house.read(job_id).status, house.charge(job_id)) == ("succeeded", "settled")
    assert len(stored(house.areas)) == 4


def test_handovers_are_bounded_so_that_every_job_ends(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)
    for _ in range(MAX_HANDOVERS):
        stopped(house, job_id)
    for _ in range(MAX_ATTEMPTS):
        stopped(house, job_id)
        assert house.read(job_id).status == "running", "no more handovers: the lease decides"
        with house.database.write() as tx:
            repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
        house.sweeper.sweep()
    job = house.read(job_id)
    assert (job.status, job.error_code, house.charge(job_id)) == ("failed", "interrupted", "settled")


def test_a_cancelled_run_is_not_handed_over(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
        house.lifecycle.request_cancel(tx, job_id)
        assert not house.lifecycle.hand_over(tx, claim)


def test_a_job_that_is_somebody_elses_cannot_be_handed_over(house: House, owner: rows.Key) -> None:
    """W10: the fencing token decides here as well."""
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
def test_a_dead_workers_lease_runs_out_whatever_happened_to_the_clock(
    house: House, owner: rows.Key, ahead: timedelta
) -> None:
    """W10: a clock that is set back by a day does not hold a job up for a day."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        house.lifecycle.claim(tx, job_id)
        repository.change(tx, job_id, lease_until=now() + ahead)
    house.sweeper.sweep()
    assert house.read(job_id).status == "queued"


def test_a_stop_sign_is_seen_by_whoever_was_forked() -> None:
    sign = StopSign()
    assert not sign.is_up()
    asked, answer = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(asked[0], 1)
        os.write(answer[1], b"y" if sign.is_up() else b"n")
        os._exit(0)
    sign.put_up()
    os.write(asked[1], b"?")
    assert os.read(answer[0], 1) == b"y"
    assert os.waitpid(child, 0)[1] == 0
    for end in (*asked, *answer):
        os.close(end)
