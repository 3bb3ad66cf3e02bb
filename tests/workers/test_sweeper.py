"""The sweeper repairs lost work in one worker at a time, and survives errors."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from app.datasets.disposal import Disposal
from app.datasets.models import Content, Dataset
from app.db import Database, now
from app.jobs import repository
from app.jobs.lifecycle import MAX_ATTEMPTS
from app.jobs.models import WorkerLease
from app.ledger import Cause, HighWaterMark
from app.queue import INGEST_CONTENT, RUN_JOB
from app.vault.marks import open_marks
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import House, make_house, memory_tables
from workers.sweeper import FORKING, Sweeper


def set_waiting_times(house: House, job_id: str, *, since: float, created: float) -> None:
    at = now()
    with house.database.write() as tx:
        moments = {"queued_at": at - timedelta(seconds=since), "created_at": at - timedelta(seconds=created)}
        repository.change(tx, job_id, **moments)


@pytest.mark.parametrize(
    ("since", "created", "reminded"),
    [(5, 5, False), (11, 11, True), (11, 111, False), (51, 151, True), (59, 9999, False), (61, 9999, True)],
)
def test_reminders_of_a_waiting_job_become_rarer(
    house: House, owner: rows.Key, since: float, created: float, reminded: bool
) -> None:
    """W10: the database's row decides, and the message is only a hint."""
    job_id = house.job(house.ready_dataset(owner), owner)
    house.queue.sent.clear()
    set_waiting_times(house, job_id, since=since, created=created)
    house.sweeper.sweep()
    assert house.queue.sent == ([(RUN_JOB, job_id)] if reminded else [])
    house.sweeper.sweep()
    assert len(house.queue.sent) == int(reminded)


def test_expired_run_is_queued_again_and_a_live_one_is_not(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    dead, alive = house.job(dataset_id, owner), house.job(dataset_id, owner)
    with house.database.write() as tx:
        claims = [house.lifecycle.claim(tx, job_id) for job_id in (dead, alive)]
        repository.change(tx, dead, lease_until=now() - timedelta(seconds=1))
    assert None not in claims
    house.queue.sent.clear()
    house.sweeper.sweep()
    assert (house.read(dead).status, house.read(alive).status) == ("queued", "running")
    assert house.queue.sent == [(RUN_JOB, dead)]


def test_a_cancelled_run_whose_worker_died_ends_cancelled(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
        house.lifecycle.open(tx, claim)
        house.lifecycle.request_cancel(tx, job_id)
        repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
    house.sweeper.sweep()
    assert (house.read(job_id).status, house.charge(job_id)) == ("cancelled", "settled")


@pytest.mark.parametrize("end", ["interrupted", "cancelled"])
def test_points_of_an_abandoned_attempt_are_destroyed(
    house: House, owner: rows.Key, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W8: points that were stored but not published would be a second answer for one charge."""
    job_id = house.job(house.ready_dataset(owner), owner)
    dying = house.runner(memory_tables)
    monkeypatch.setattr(dying, "_publish", lambda *_: (_ for _ in ()).throw(SystemExit()))
    with pytest.raises(SystemExit):
        dying.run(job_id)
    assert len(stored(house.areas)) == len(REPRESENTATIONS)
    with house.database.write() as tx:
        changes: dict[str, Any] = {"attempts": MAX_ATTEMPTS} if end == "interrupted" else {"cancel_requested": True}
        repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1), **changes)
    house.sweeper.sweep()
    assert house.read(job_id).status == ("failed" if end == "interrupted" else "cancelled")
    assert stored(house.areas) == []


def test_jobs_of_a_deleted_dataset_end(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    with house.database.write() as tx:
        tx.execute(update(Dataset).values(deleted_at=now()))
    house.sweeper.sweep()
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("dataset_deleted", "voided")


def test_lost_ingestions_are_sent_again(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    with house.database.write() as tx:
        content = rows.content(
            tx, dataset_id, version=2, status="received", original=["2" * 32], queued_at=now() - timedelta(hours=1)
        )
    house.sweeper.sweep()
    assert (INGEST_CONTENT, content.id) in house.queue.sent


def test_superseded_table_is_destroyed_unless_a_job_uses_it(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    with house.database.write() as tx:
        claim = house.lifecycle.claim(tx, job_id)
        assert claim is not None
        house.lifecycle.open(tx, claim)
        rows.content(tx, dataset_id, version=2, table_object="1" * 32, wrapped_key=b"wrapped")

    def tables() -> list[str | None]:
        with house.database.read() as session:
            return list(session.scalars(select(Content.table_object).order_by(Content.version)))

    house.sweeper.sweep()
    assert tables() == ["0" * 32, "1" * 32]
    with house.database.write() as tx:
        house.lifecycle.request_cancel(tx, job_id)
        house.lifecycle.end_cancelled(tx, claim)
    house.sweeper.sweep()
    assert tables() == [None, "1" * 32]


def test_one_sweeper_at_a_time_and_the_next_takes_over(house: House, owner: rows.Key) -> None:
    def another() -> Sweeper:
        return Sweeper(house.database, house.ledger, house.lifecycle, house.queue, Disposal(house.areas))

    first, second = another(), another()
    assert (first._renew_lease(), second._renew_lease(), first._renew_lease()) == (True, False, True)
    first._release_lease()
    assert second._renew_lease()
    with house.database.write() as tx:
        tx.execute(update(WorkerLease).values(until=now() - timedelta(seconds=1)))
    assert another()._renew_lease()


def test_an_error_ends_neither_the_sweep_nor_the_sweeper(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """W3, W10: a failure in one job delays no other job, and the log does not repeat its message."""
    dataset_id = house.ready_dataset(owner)
    jobs = [house.job(dataset_id, owner) for _ in range(2)]
    with house.database.write() as tx:
        for job_id in jobs:
            house.lifecycle.claim(tx, job_id)
            repository.change(tx, job_id, lease_until=now() - timedelta(seconds=1))
    genuine = house.sweeper._lifecycle.recover

    def failing(tx: Any, job_id: str) -> None:
        if job_id == jobs[0]:
            raise RuntimeError("canary-8417.25")
        genuine(tx, job_id)

    monkeypatch.setattr(house.sweeper._lifecycle, "recover", failing)
    house.sweeper.sweep()
    assert [house.read(job_id).status for job_id in jobs] == ["running", "queued"]
    assert "canary" not in "".join(capfd.readouterr())


def test_no_child_is_forked_during_a_sweep() -> None:
    """A child that is forked during a database call may never start."""
    assert not FORKING.locked()
    child = os.fork()
    if child == 0:
        os._exit(1 if FORKING.locked() else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert not FORKING.locked()


def test_freezes_are_written_to_the_high_water_mark(database: Database, tmp_path: Path, owner: rows.Key) -> None:
    """W11: the sweeper writes all freezes, because an API process cannot write the high-water mark."""
    mark_url = (tmp_path / "mark").as_uri()
    house = make_house(database, tmp_path, mark_url=mark_url)
    dataset_id = house.ready_dataset(owner)
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset_id, Cause.RUN)
    assert open_marks(mark_url).names() == frozenset()
    house.sweeper.sweep()
    (name,) = open_marks(mark_url).names()
    state = HighWaterMark(open_marks(mark_url), house.ledger.signer).read(name)
    assert state is not None
    assert state.balance.frozen
    house.sweeper.sweep()
    assert open_marks(mark_url).names() == {name}
