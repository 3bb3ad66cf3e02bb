"""Whole jobs in this process, with failures at each step."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from app.datasets.models import Content, Dataset
from app.db import now
from app.inference.core import plan_json
from app.inference.methods.surrogate import planning
from app.jobs.models import Job
from app.privacy.events import GaussianEvent, SelfComposedEvent
from app.vault.signing import verify
from tests.factories import rows
from tests.factories.datasets import stored
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import House, memory_tables
from tests.workers.support import acting_tables, failing_tables, kinds, lose_lease, releases
from workers import run_task as runner_module
from workers.computation import compute

CANARY = "canary-8417.25"
SURROGATE = {
    "method": "dp-psvi-surrogate",
    "privacy": {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 9},
    "parameters": {},
}


class ProcessLost(BaseException):
    """Simulates SIGKILL: no handler of ``Exception`` catches it."""


def test_a_job_ends_with_one_release_and_one_settled_charge(house: House, owner: rows.Key) -> None:
    """W8: rows are read under a durable reservation, and the release is published with its settled charge."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    house.run(job_id)
    job, (release,) = house.read(job_id), releases(house)
    assert (job.status, job.stage, job.release_id) == ("succeeded", "ended", release.id)
    assert job.steps_done == job.steps_planned == 5
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "opened", "settled"]
    assert release.job_id == job_id
    assert release.body["cost"] == {"epsilon": job.cost_epsilon, "delta": job.cost_delta}
    assert len(stored(house.areas)) == len(REPRESENTATIONS)
    with house.database.read() as session:
        assert house.ledger.contains_settled(session, job_id)
        assert house.ledger.verify(session) == ()


def test_the_certificate_states_what_ran_and_verifies(house: House, owner: rows.Key) -> None:
    """W11: a certificate states its account's head in the hash chain, and is signed with the release key."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    house.run(job_id)
    (release,) = releases(house)
    statement = release.certificate["statement"]
    published = {key.use: key.public_key for key in house.services.verification_keys}
    assert verify(release.certificate, published["release"])
    assert not verify(release.certificate, published["ledger"])
    assert (statement["release_id"], statement["dataset_id"]) == (release.id, dataset_id)
    assert statement["privacy"] == release.body["cost"]
    assert statement["account"]["limit"] == {"epsilon": 2.0, "delta": 1e-6}
    assert statement["events"] == [
        {"kind": "self_composed", "count": 5, "event": {"kind": "gaussian", "noise_multiplier": 30.0}}
    ]
    (query,) = statement["queries"]
    assert (query["kind"], query["count"], query["event"]["noise_multiplier"]) == ("potential_sum", 5, 30.0)
    with house.database.read() as session:
        (newest, *_) = house.ledger.entries(session, dataset_id, limit=1, before=None)
    assert (statement["account"]["sequence"], statement["account"]["head"]) == (newest.sequence, newest.entry_hash)


def test_checkpoints_are_written_before_rows_are_read_and_at_publication(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W8, W11: the order is open, commit, checkpoint, rows."""
    happened: list[str] = []
    checkpoint = house.ledger.checkpoint

    def recording_checkpoint(tx: Any, dataset_id: str) -> Any:
        happened.append(f"checkpoint after {house.ledger.state(tx, job_id)}")
        return checkpoint(tx, dataset_id)

    monkeypatch.setattr(house.ledger, "checkpoint", recording_checkpoint)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.runner(acting_tables(lambda: happened.append("rows"))).run(job_id)
    assert happened == ["checkpoint after opened", "rows", "checkpoint after settled"]


@pytest.mark.parametrize("deliveries", [2, 3])
def test_repeated_message_has_no_effect(house: House, owner: rows.Key, deliveries: int) -> None:
    """W10: messages arrive twice or late, but a job is charged and published once."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    for _ in range(deliveries):
        house.run(job_id)
    assert len(releases(house)) == 1
    assert kinds(house, dataset_id).count("settled") == 1


def test_plan_that_this_version_cannot_make_is_refused_before_opening(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W4, W8: its certificate would be wrong. No query was made, so the job is not charged."""
    dataset_id = house.ready_dataset(owner)
    with monkeypatch.context() as then:
        then.setattr(planning, "describe_clipping", lambda _setup: "Other bounds.")
        job_id = house.job(dataset_id, owner, **SURROGATE)
    house.run(job_id)
    assert (house.read(job_id).status, house.read(job_id).error_code) == ("failed", "run_failed")
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "voided"]
    assert releases(house) == []


def test_message_for_an_unknown_job_has_no_effect(house: House) -> None:
    house.run("job_00000000000000000000000000")


@pytest.mark.parametrize("error", [ValueError(CANARY), MemoryError(CANARY), OSError(CANARY)])
@pytest.mark.parametrize("place", ["rows", "method"])
def test_exception_ends_and_charges_the_job_and_is_not_logged(
    house: House,
    owner: rows.Key,
    error: Exception,
    place: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W3, W10, W14: a failure after opening is never refunded, and only its error code is stored and logged."""

    def broken(*_: Any) -> Any:
        raise error

    job_id = house.job(house.ready_dataset(owner), owner)
    if place == "method":
        monkeypatch.setattr(runner_module, "compute", broken)
    house.runner(failing_tables(error) if place == "rows" else memory_tables).run(job_id)
    job = house.read(job_id)
    assert (job.status, job.error_code, job.release_id) == ("failed", "run_failed", None)
    assert house.charge(job_id) == "settled"
    house.run(job_id)
    assert house.read(job_id).attempts == 1
    assert releases(house) == []
    with sqlite3.connect(tmp_path / "corevault.sqlite3") as connection:
        assert CANARY not in "\n".join(connection.iterdump())
    connection.close()
    output = "".join(capfd.readouterr())
    assert "run_failed" in output
    assert CANARY not in output
    assert type(error).__name__ not in output


def test_fault_on_rows_freezes_the_account(house: House, owner: rows.Key) -> None:
    """W14: functions on rows are total, so a failure of one may reveal a row and stops all spending."""
    dataset_id = house.ready_dataset(owner)
    first, second = house.job(dataset_id, owner), house.job(dataset_id, owner)
    house.runner(failing_tables(ZeroDivisionError())).run(first)
    assert house.read(first).error_code == "run_failed"
    assert kinds(house, dataset_id)[-1] == "frozen"
    house.run(second)
    assert (house.read(second).status, house.charge(second)) == ("failed", "voided")
    assert releases(house) == []


def test_job_fails_without_a_freeze_if_the_store_is_away(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    house.runner().run(job_id)  # the real enclave: no such object, no such key
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("run_failed", "settled")
    assert "frozen" not in kinds(house, dataset_id)


def test_points_of_events_other_than_planned_are_never_released(
    house: House, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W4: the events carried out are compared with the plan before publication."""

    def fewer(*arguments: Any) -> Any:
        points, _ = compute(*arguments)
        return points, (SelfComposedEvent(GaussianEvent(30.0), 4),)

    monkeypatch.setattr(runner_module, "compute", fewer)
    job_id = house.job(house.ready_dataset(owner), owner)
    house.run(job_id)
    assert (house.read(job_id).error_code, house.charge(job_id)) == ("run_failed", "settled")
    assert releases(house) == []


def test_plan_altered_after_the_reservation_is_never_opened(house: House, owner: rows.Key) -> None:
    """W8: the plan must equal the reservation before opening."""
    job_id = house.job(house.ready_dataset(owner), owner)
    with house.database.write() as tx:
        job = tx.get_one(Job, job_id)
        plan = plan_json.to_json(plan_json.from_json(job.plan))
        plan["queries"][0]["event"]["noise_multiplier"] = 0.1
        job.plan = plan
    opened: list[None] = []
    house.runner(acting_tables(lambda: opened.append(None))).run(job_id)
    assert opened == []
    assert house.read(job_id).error_code == "run_failed"


@pytest.mark.parametrize("moment", ["rows", "stored", "published"])
def test_attempt_of_a_lost_process_is_repeated_under_its_reservation(
    house: House, owner: rows.Key, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: at each step, there is one charge, one release and no object of the abandoned attempt."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    dying = house.runner(failing_tables(ProcessLost()) if moment == "rows" else memory_tables)
    with monkeypatch.context() as patched:
        if moment == "stored":
            patched.setattr(dying, "_publish", lambda *_: (_ for _ in ()).throw(ProcessLost()))
        if moment == "published":
            publish = dying._publish
            patched.setattr(dying, "_publish", lambda *a: (publish(*a), (_ for _ in ()).throw(ProcessLost())))
        with pytest.raises(ProcessLost):
            dying.run(job_id)
    assert house.read(job_id).status == ("succeeded" if moment == "published" else "running")
    lose_lease(house, job_id)
    house.run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert len(releases(house)) == 1
    assert kinds(house, dataset_id) == ["account_opened", "reserved", "opened", "settled"]
    assert len(stored(house.areas)) == len(REPRESENTATIONS)


def test_job_that_kills_three_workers_ends_interrupted_and_charged(house: House, owner: rows.Key) -> None:
    """W10: every job ends."""
    job_id = house.job(house.ready_dataset(owner), owner)
    for _ in range(3):
        with pytest.raises(ProcessLost):
            house.runner(failing_tables(ProcessLost())).run(job_id)
        lose_lease(house, job_id)
    job = house.read(job_id)
    assert (job.status, job.error_code, job.attempts) == ("failed", "interrupted", 3)
    assert house.charge(job_id) == "settled"


def test_attempt_that_lost_its_lease_publishes_nothing(house: House, owner: rows.Key) -> None:
    """W10: the older fencing token is refused, although its attempt ends after the new one."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)

    def lose_lease_during_run() -> None:
        lose_lease(house, job_id)
        house.run(job_id)

    house.runner(acting_tables(lose_lease_during_run)).run(job_id)
    (release,) = releases(house)
    assert (house.read(job_id).status, house.read(job_id).release_id) == ("succeeded", release.id)
    assert kinds(house, dataset_id).count("settled") == 1
    assert {each["object"] for each in release.representations.values()} == set(stored(house.areas))


@pytest.mark.parametrize("error", [None, MemoryError()])
def test_attempt_without_its_lease_leaves_the_job_to_the_next_one(
    house: House, owner: rows.Key, error: Exception | None
) -> None:
    """W10: the older fencing token is refused also while the next attempt runs, which alone settles and publishes."""
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    successor = house.runner(memory_tables)

    def lose_lease_during_run() -> None:
        lose_lease(house, job_id)
        with house.database.write() as tx:
            claims.append(house.lifecycle.claim(tx, job_id))
        if error is not None:
            raise error

    claims: list[Any] = []
    house.runner(acting_tables(lose_lease_during_run)).run(job_id)
    assert (house.read(job_id).status, house.charge(job_id)) == ("running", "opened")
    assert (releases(house), stored(house.areas)) == ([], [])
    with successor.heartbeat(claims[0]) as heartbeat:
        successor._carry_through(claims[0], heartbeat)
    assert (house.read(job_id).status, len(releases(house))) == ("succeeded", 1)
    assert kinds(house, dataset_id).count("settled") == 1


def test_failing_attempt_without_its_lease_changes_nothing(house: House, owner: rows.Key) -> None:
    job_id = house.job(house.ready_dataset(owner), owner)

    def lose_lease_during_run() -> None:
        lose_lease(house, job_id)
        house.run(job_id)
        raise MemoryError

    house.runner(acting_tables(lose_lease_during_run)).run(job_id)
    assert house.read(job_id).status == "succeeded"
    assert len(stored(house.areas)) == len(REPRESENTATIONS)


def test_job_cancelled_during_its_run_is_charged_without_a_release(house: House, owner: rows.Key) -> None:
    """W8, W10: an opened reservation is charged, also if the caller stops the run."""
    job_id = house.job(house.ready_dataset(owner), owner)

    def cancel() -> None:
        with house.database.write() as tx:
            house.lifecycle.request_cancel(tx, job_id)

    house.runner(acting_tables(cancel)).run(job_id)
    assert (house.read(job_id).status, house.charge(job_id)) == ("cancelled", "settled")
    assert (releases(house), stored(house.areas)) == ([], [])


def test_job_ends_if_its_dataset_is_deleted_during_the_run(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    running, queued = house.job(dataset_id, owner), house.job(dataset_id, owner)

    def delete_dataset() -> None:
        with house.database.write() as tx:
            house.lifecycle.dataset_deleted(tx, dataset_id)
            tx.get_one(Dataset, dataset_id).deleted_at = now()

    house.runner(acting_tables(delete_dataset)).run(running)
    house.run(queued)
    assert [(house.read(job).error_code, house.charge(job)) for job in (running, queued)] == [
        ("dataset_deleted", "settled"),
        ("dataset_deleted", "voided"),
    ]
    assert (releases(house), stored(house.areas)) == ([], [])


def test_later_attempt_reads_the_content_that_the_first_one_pinned(house: House, owner: rows.Key) -> None:
    dataset_id = house.ready_dataset(owner)
    job_id = house.job(dataset_id, owner)
    with pytest.raises(ProcessLost):
        house.runner(failing_tables(ProcessLost())).run(job_id)
    with house.database.write() as tx:
        rows.content(tx, dataset_id, version=2, table_object="1" * 32, wrapped_key=b"wrapped")
    lose_lease(house, job_id)
    house.run(job_id)
    (release,) = releases(house)
    assert release.certificate["statement"]["content_version"] == 1
    with house.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Content)) == 2


@pytest.mark.parametrize("method", ["uniform", "dp-psvi"])
def test_public_data_needs_no_account(house: House, owner: rows.Key, method: str) -> None:
    dataset_id = house.ready_dataset(owner, sensitivity="public")
    changes: dict[str, Any] = {"privacy": None, "parameters": {}} if method == "uniform" else {}
    job_id = house.job(dataset_id, owner, method=method, **changes)
    house.run(job_id)
    (release,) = releases(house)
    assert release.body["cost"] is None
    statement = release.certificate["statement"]
    assert (statement["privacy"], statement["account"], statement["accountant"]) == (None, None, None)
    assert house.read(job_id).status == "succeeded"
