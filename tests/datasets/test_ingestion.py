"""Ingestion of a content: one worker at a time, one end, and the old content stays in force until then."""

import secrets
from datetime import timedelta
from typing import Any

import pytest

from app.datasets import ingestion, repository
from app.datasets.facts import digest_facts
from app.datasets.ingestion import Claim, Outcome, Rejection, StoredTable
from app.datasets.models import Content
from app.db import Database, WriteSession, now
from app.ledger import Ledger
from app.queue import INGEST_CONTENT
from app.services import Services
from tests.factories import rows
from tests.factories.queue import RecordingQueue

PAST = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
TABLE = StoredTable("0" * 32, b"wrapped", "f" * 64)


@pytest.fixture
def dataset_id(database: Database, services: Services, owner: rows.Key) -> str:
    with database.write() as tx:
        return private_dataset(tx, services.ledger, owner)


def private_dataset(tx: WriteSession, ledger: Ledger, owner: rows.Key) -> str:
    dataset = rows.dataset(tx, owner.id)
    ledger.open_account(
        tx,
        owner_id=owner.id,
        population=dataset.population,
        dataset_id=dataset.id,
        unit={"kind": "row"},
        slots=dataset.slots,
        facts=digest_facts(dataset),
        epsilon=1.0,
        delta=1e-6,
    )
    return dataset.id


def received(database: Database, dataset_id: str, version: int = 1, **fields: Any) -> str:
    with database.write() as tx:
        defaults = {"status": "received", "original": [secrets.token_hex(16)], "table_object": None, "ended_at": None}
        return rows.content(tx, dataset_id, version=version, **(defaults | fields)).id


def claimed(database: Database, content_id: str) -> Claim:
    with database.write() as tx:
        held = ingestion.claim(tx, content_id)
    assert held is not None
    return held


def content(database: Database, content_id: str) -> Content:
    with database.read() as session:
        return session.get_one(Content, content_id)


def expire(database: Database, content_id: str) -> None:
    with database.write() as tx:
        tx.get_one(Content, content_id).lease_until = now() - PAST


def kinds(database: Database, ledger: Ledger, dataset_id: str) -> list[str]:
    with database.read() as session:
        return [entry.kind for entry in ledger.entries(session, dataset_id, limit=50, before=None)]


def test_claim_contains_the_input_of_an_ingestion(database: Database, dataset_id: str, owner: rows.Key) -> None:
    held = claimed(database, received(database, dataset_id))
    assert (held.dataset_id, held.owner_id, held.version) == (dataset_id, owner.id, 1)
    assert [column.name for column in held.facts.columns] == [column["name"] for column in rows.COLUMNS]
    assert held.facts.columns[0].impute == 38
    assert held.facts.slots == 1_000


def test_content_is_claimed_once_until_its_lease_expires(database: Database, dataset_id: str) -> None:
    content_id = received(database, dataset_id)
    first = claimed(database, content_id)
    with database.write() as tx:
        assert ingestion.claim(tx, content_id) is None
        assert ingestion.extend_lease(tx, first)
    expire(database, content_id)
    second = claimed(database, content_id)
    assert second.fencing_token > first.fencing_token


def test_lease_has_the_length_that_its_worker_asks_for(database: Database, dataset_id: str) -> None:
    """W10: a worker that rarely renews its lease keeps its content."""
    content_id, hour = received(database, dataset_id), timedelta(hours=1)
    with database.write() as tx:
        held = ingestion.claim(tx, content_id, hour.total_seconds())
    assert held is not None
    claimed_until = content(database, content_id).lease_until
    assert claimed_until is not None
    assert claimed_until > now() + hour / 2
    expire(database, content_id)
    with database.write() as tx:
        assert ingestion.extend_lease(tx, held)
    renewed_until = content(database, content_id).lease_until
    assert renewed_until is not None
    assert renewed_until >= claimed_until


def test_worker_with_an_old_token_changes_nothing(database: Database, services: Services, dataset_id: str) -> None:
    """W10: the token of a late attempt is outdated."""
    content_id = received(database, dataset_id)
    first = claimed(database, content_id)
    expire(database, content_id)
    claimed(database, content_id)
    with database.write() as tx:
        assert not ingestion.extend_lease(tx, first)
        assert not ingestion.reject(tx, first, Rejection.EMPTY)
        assert not ingestion.release(tx, first, counted=True)
        assert ingestion.mark_ready(tx, services.ledger, first, TABLE) is Outcome.LOST
    assert content(database, content_id).status == "received"


@pytest.mark.parametrize(("counted", "attempts"), [(True, 1), (False, 0)])
def test_released_content_can_be_claimed_again_after_a_wait(
    database: Database, dataset_id: str, counted: bool, attempts: int
) -> None:
    content_id = received(database, dataset_id)
    with database.write() as tx:
        held = ingestion.claim(tx, content_id)
        assert held is not None
        assert ingestion.release(tx, held, counted=counted)
        assert ingestion.claim(tx, content_id) is None
    assert content(database, content_id).attempts == attempts
    expire(database, content_id)
    claimed(database, content_id)


@pytest.mark.parametrize(("hours", "least", "most"), [(0, 4, 6), (0.1, 170, 190), (24 * 365, 590, 610)])
def test_postponed_content_waits_longer_and_is_never_rejected(
    database: Database, queue: RecordingQueue, dataset_id: str, hours: float, least: float, most: float
) -> None:
    """W10: a full store is no fault of the file; the wait grows up to a bound."""
    content_id = received(database, dataset_id)
    with database.write() as tx:
        tx.get_one(Content, content_id).received_at = now() - timedelta(hours=hours)
    for _ in range(2 * len(ingestion.PAUSES)):
        held = claimed(database, content_id)
        with database.write() as tx:
            assert ingestion.postpone(tx, held)
        waiting = content(database, content_id)
        assert waiting.lease_until is not None
        assert least <= (waiting.lease_until - now()).total_seconds() <= most
        assert (waiting.status, waiting.attempts) == ("received", 0)
        expire(database, content_id)
        with database.write() as tx:
            ingestion.requeue_stale(tx, queue)
    assert queue.sent == [(INGEST_CONTENT, content_id)] * (2 * len(ingestion.PAUSES))
    claimed(database, content_id)
    with database.write() as tx:
        assert not ingestion.postpone(tx, held)  # a late call changes nothing


def test_ready_content_comes_into_force_and_replacement_is_recorded(
    database: Database, services: Services, dataset_id: str
) -> None:
    for version in (1, 2):
        held = claimed(database, received(database, dataset_id, version))
        stored = StoredTable(f"{version:032x}", b"wrapped", str(version) * 64)
        with database.write() as tx:
            assert ingestion.mark_ready(tx, services.ledger, held, stored) is Outcome.READY
        with database.read() as session:
            current = repository.find_in_force(session, dataset_id)
        assert current is not None
        expected = (version, stored.table_object, b"wrapped")
        assert (current.version, current.table_object, current.wrapped_key) == expected
    assert kinds(database, services.ledger, dataset_id) == ["content_replaced", "account_opened"]


def test_content_that_ends_after_a_newer_one_never_comes_into_force(
    database: Database, services: Services, dataset_id: str
) -> None:
    older, newer = (claimed(database, received(database, dataset_id, version)) for version in (1, 2))
    with database.write() as tx:
        assert ingestion.mark_ready(tx, services.ledger, newer, TABLE) is Outcome.READY
        late = StoredTable("1" * 32, b"late", "e" * 64)
        assert ingestion.mark_ready(tx, services.ledger, older, late) is Outcome.READY
    with database.read() as session:
        current = repository.find_in_force(session, dataset_id)
    assert current is not None
    assert current.version == 2
    assert kinds(database, services.ledger, dataset_id) == ["account_opened"]


def test_rejection_leaves_the_old_content_in_force(database: Database, services: Services, dataset_id: str) -> None:
    with database.write() as tx:
        rows.content(tx, dataset_id, version=1)
    content_id = received(database, dataset_id, 2)
    held = claimed(database, content_id)
    with database.write() as tx:
        assert ingestion.reject(tx, held, Rejection.TOO_MANY_UNITS)
    ended = content(database, content_id)
    assert (ended.status, ended.rejection, ended.lease_until) == ("rejected", "too_many_units", None)
    with database.write() as tx:
        pinned = ingestion.pin(tx, dataset_id)
    assert pinned is not None
    assert pinned.version == 1


def test_identical_file_in_a_second_population_is_rejected(
    database: Database, services: Services, owner: rows.Key, dataset_id: str
) -> None:
    """W9: a second account for the same people would double their budget."""
    with database.write() as tx:
        other_id = private_dataset(tx, services.ledger, owner)
    outcomes = []
    for identifier in (dataset_id, other_id):
        held = claimed(database, received(database, identifier))
        with database.write() as tx:
            outcomes.append(ingestion.mark_ready(tx, services.ledger, held, TABLE))
    assert outcomes == [Outcome.READY, Outcome.REJECTED]
    refused = content(database, held.content_id)
    assert (refused.status, refused.rejection, refused.table_object) == ("rejected", "duplicate_content", None)
    again = claimed(database, received(database, dataset_id, 2))
    with database.write() as tx:
        assert ingestion.mark_ready(tx, services.ledger, again, TABLE) is Outcome.READY


def test_public_content_needs_no_ledger_account(database: Database, services: Services, owner: rows.Key) -> None:
    with database.write() as tx:
        dataset = rows.dataset(tx, owner.id, sensitivity="public")
        dataset_id = dataset.id
    for version in (1, 2):
        held = claimed(database, received(database, dataset_id, version))
        with database.write() as tx:
            assert ingestion.mark_ready(tx, services.ledger, held, TABLE) is Outcome.READY


def test_content_of_a_deleted_dataset_is_not_ingested(
    database: Database, services: Services, queue: RecordingQueue, dataset_id: str
) -> None:
    content_id = received(database, dataset_id, queued_at=now() - PAST)
    held = claimed(database, content_id)
    with database.write() as tx:
        dataset = repository.get(tx, dataset_id)
        assert dataset is not None
        dataset.deleted_at = now()
    with database.write() as tx:
        assert ingestion.mark_ready(tx, services.ledger, held, TABLE) is Outcome.LOST
    expire(database, content_id)
    with database.write() as tx:
        assert ingestion.claim(tx, content_id) is None
        assert ingestion.pin(tx, dataset_id) is None
        ingestion.requeue_stale(tx, queue)
    assert queue.sent == []


def test_content_without_message_or_worker_is_queued_again(
    database: Database, queue: RecordingQueue, dataset_id: str
) -> None:
    """W10: the state is in the database row, and a lost message has no effect on it."""
    lost = received(database, dataset_id, 1, queued_at=now() - PAST)
    orphaned = received(database, dataset_id, 2, lease_until=now() - PAST, attempts=1)
    received(database, dataset_id, 3)
    received(database, dataset_id, 4, lease_until=now() + PAST, queued_at=now() - PAST)
    with database.write() as tx:
        ingestion.requeue_stale(tx, queue)
        assert queue.sent == []
    assert sorted(queue.sent) == sorted([(INGEST_CONTENT, lost), (INGEST_CONTENT, orphaned)])
    with database.write() as tx:
        ingestion.requeue_stale(tx, queue)
    assert len(queue.sent) == 2


def test_content_whose_workers_crash_is_paused_and_never_rejected(
    database: Database, queue: RecordingQueue, dataset_id: str
) -> None:
    """Only faults of the file reject it; early and repeated messages change nothing."""
    waits = [*ingestion.PAUSES.values(), ingestion.LONGEST_PAUSE]
    for attempts, pause in zip([0, *ingestion.PAUSES], waits, strict=True):
        ends = now() - pause
        early = received(database, dataset_id, attempts + 1, lease_until=ends + MINUTE, attempts=attempts)
        late = received(database, dataset_id, attempts + 2, lease_until=ends - MINUTE, attempts=attempts)
        with database.write() as tx:
            assert ingestion.claim(tx, early) is None
            ingestion.requeue_stale(tx, queue)
        assert queue.sent == [(INGEST_CONTENT, late)]
        queue.sent.clear()
        assert claimed(database, late).fencing_token == 1
        assert content(database, late).status == "received"
