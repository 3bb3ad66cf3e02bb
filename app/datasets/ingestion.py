"""The state of a content during ingestion: a worker claims it, renews the lease, and ends it once.

The API and the workers both use this module. A claim is one compare-and-set that sets a lease and raises the fencing
token. A worker with an older token has lost the content and cannot change it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, case, literal, or_, select, update

from app.datasets import repository
from app.datasets.facts import digest_facts, make_declared_facts
from app.datasets.models import Content, Dataset
from app.datasets.series import Membership, find_membership, make_turn_condition
from app.datasets.uploads import repository as uploads
from app.datasets.uploads.models import name_context
from app.db import WriteSession, now
from app.errors import Internal
from app.inference.core.facts import DeclaredFacts
from app.ledger import Ledger, OwnerAccounts, Registration
from app.queue import INGEST_CONTENT, TaskQueue
from app.vault.envelope import SealedPart

LEASE_SECONDS = 10.0
REQUEUE_SECONDS = 30
RETRY_SECONDS = 5
LONGEST_RETRY_SECONDS = 600
"""Longest wait before the next attempt while a store is full or unavailable. The number of attempts has no limit."""
PAUSES = {3: timedelta(), 6: timedelta(minutes=5), 9: timedelta(minutes=30)}
"""Pause between the end of a lease and the next attempt. The first key above the number of attempts applies."""
LONGEST_PAUSE = timedelta(hours=6)
"""Pause for contents with at least as many attempts as the last key of :data:`PAUSES`."""


class Rejection(StrEnum):
    """The reason why a whole file was rejected.

    A fault in a single row does not reject the file. Such faults have no code and are not counted. ``SERIES_MISMATCH``
    is no fault of the file: the earlier uploads of its series do not verify.
    """

    MALFORMED = "malformed"
    EMPTY = "empty"
    MISSING_COLUMN = "missing_column"
    UNKNOWN_COLUMN = "unknown_column"
    WRONG_TYPE = "wrong_type"
    TOO_LARGE = "too_large"
    TOO_MANY_UNITS = "too_many_units"
    DUPLICATE_CONTENT = "duplicate_content"
    DIGEST_MISMATCH = "digest_mismatch"
    SERIES_MISMATCH = "series_mismatch"


class Outcome(StrEnum):
    """The result of :func:`mark_ready`. If it is not ``READY``, the caller deletes the new table."""

    READY = "ready"
    REJECTED = "rejected"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt to ingest a content: its input and its fencing token.

    The dataset's key is not part of it, because the database does not store that key.
    """

    content_id: str
    dataset_id: str
    owner_id: str
    version: int
    received_at: datetime
    media_type: str
    original: tuple[SealedPart, ...]
    sealed_digest: bytes | None  # announced digest of the whole file, sealed to the worker
    facts: DeclaredFacts
    facts_digest: str
    membership: Membership | None
    fencing_token: int
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The encrypted table and its wrapped key; in a series also its register."""

    table_object: str
    wrapped_key: bytes
    fingerprint: str
    register_object: str | None = None


def claim(tx: WriteSession, content_id: str, lease_seconds: float = LEASE_SECONDS) -> Claim | None:
    """Claim the content for ``lease_seconds``.

    Return None if the content cannot be claimed. Either it has ended, or its dataset is deleted. Or another worker has
    a lease, its pause has not ended, or an earlier content of its series has not ended.
    """
    moment = now()
    free = or_(Content.lease_until.is_(None), _idle_since(moment))
    alive = Content.dataset_id.in_(select(Dataset.id).where(Dataset.deleted_at.is_(None)))
    taken = tx.execute(
        update(Content)
        .where(Content.id == content_id, Content.status == "received", free, alive, make_turn_condition())
        .values(
            lease_until=moment + timedelta(seconds=lease_seconds),
            fencing_token=Content.fencing_token + 1,
            attempts=Content.attempts + 1,
        )
        .returning(Content.id),
        execution_options={"synchronize_session": False},
    ).one_or_none()
    return None if taken is None else _build_claim(tx, content_id, lease_seconds)


def _build_claim(tx: WriteSession, content_id: str, lease_seconds: float) -> Claim:
    content = tx.get_one(Content, content_id, populate_existing=True)
    dataset = tx.get_one(Dataset, content.dataset_id)
    parts = uploads.list_parts(tx, content_id)
    if [part.number for part in parts] != list(range(content.parts)):
        raise Internal
    return Claim(
        content_id=content.id,
        dataset_id=dataset.id,
        owner_id=dataset.owner_id,
        version=content.version,
        received_at=content.received_at,
        media_type=content.media_type,
        original=tuple(
            SealedPart(part.object_name, name_context(content_id, place)) for place, part in enumerate(parts)
        ),
        sealed_digest=content.sealed_digest,
        facts=make_declared_facts(dataset),
        facts_digest=digest_facts(dataset),
        membership=find_membership(tx, content, dataset),
        fencing_token=content.fencing_token,
        lease_seconds=lease_seconds,
    )


def extend_lease(tx: WriteSession, held: Claim) -> bool:
    """Extend the lease; return False if another worker holds the content or it has ended."""
    return _change(tx, held, lease_until=now() + timedelta(seconds=held.lease_seconds))


def release(tx: WriteSession, held: Claim, *, counted: bool) -> bool:
    """Give the content back for another attempt, after ``RETRY_SECONDS`` and a pause (:data:`PAUSES`).

    Args:
        tx: the transaction.
        held: the claim to give back.
        counted: whether this attempt counts. Pass True if the file may have caused the failure, and False if the
            worker is being stopped.
    """
    return _give_back(tx, held, RETRY_SECONDS, attempts=Content.attempts - (0 if counted else 1))


def postpone(tx: WriteSession, held: Claim) -> bool:
    """Give the content back because the store is full or unavailable.

    The attempt does not count. The wait is half of the content's age, but at least ``RETRY_SECONDS`` and at most
    ``LONGEST_RETRY_SECONDS``.
    """
    age = (now() - held.received_at).total_seconds()
    wait = min(max(age / 2, RETRY_SECONDS), LONGEST_RETRY_SECONDS)
    return _give_back(tx, held, wait, attempts=Content.attempts - 1)


def _give_back(tx: WriteSession, held: Claim, seconds: float, **values: Any) -> bool:
    return _change(tx, held, lease_until=now() + timedelta(seconds=seconds), **values)


def reject(tx: WriteSession, held: Claim, reason: Rejection, columns: Sequence[str] = ()) -> bool:
    """Reject the content, usually because its file has a fault.

    The dataset keeps the content that is in force. ``columns`` are the names of the faulty columns, from the file's
    header or from the declaration.
    """
    names = list(columns) or None
    ended = {"status": "rejected", "rejection": str(reason), "rejection_columns": names, "ended_at": now()}
    return _change(tx, held, lease_until=None, **ended)


def mark_ready(tx: WriteSession, ledger: Ledger, held: Claim, stored: StoredTable) -> Outcome:
    """Make the content ready, because its file was parsed and stored as a table.

    The content comes into force unless a newer content is ready already. If it replaces another content of a private
    dataset, the ledger records this.

    Returns:
        ``LOST`` if the dataset is deleted or this worker has lost the content. ``REJECTED`` if a dataset of another
        population of the same owner has received the same file: otherwise its rows would have two budgets.
        ``READY`` otherwise.

    Raises:
        StateConflict: the worker used other registers than the ledger has, or an account does not verify.
        Internal: the dataset's series was altered since the claim.
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    dataset = repository.lock(tx, held.dataset_id)
    content = tx.scalars(select(Content).where(*_fence(held)).with_for_update()).one_or_none()
    if content is None or dataset is None or dataset.deleted_at is not None:
        return Outcome.LOST
    before = repository.find_in_force(tx, dataset.id)
    content.ended_at, content.lease_until = now(), None
    private = dataset.sensitivity == "private"
    locked = None if held.membership is None else ledger.lock_accounts(tx, dataset.id)
    if private and not ledger.claim_fingerprint(tx, dataset.id, stored.fingerprint):
        content.status, content.rejection = "rejected", str(Rejection.DUPLICATE_CONTENT)
        return Outcome.REJECTED
    content.status, content.table_object, content.wrapped_key = "ready", stored.table_object, stored.wrapped_key
    content.register_object = stored.register_object
    _register(tx, ledger, locked, held.membership, content)
    if private and before is not None and before.version < content.version:
        ledger.content_replaced(tx, dataset.id, content.version)
    return Outcome.READY


def _register(
    tx: WriteSession, ledger: Ledger, locked: OwnerAccounts | None, membership: Membership | None, content: Content
) -> None:
    """Compare the worker's registers with the ledger, and add the content's own.

    Without a series, do nothing.

    Raises:
        StateConflict: the worker used other registers.
        Internal: the dataset's series was altered since the claim, or the worker wrote no register.
    """
    series = tx.get_one(Dataset, content.dataset_id).series
    place, register = content.series_place, content.register_object
    if membership is None and series is None and register is None:
        return
    if locked is None or membership is None or membership.name != series or place is None or register is None:
        raise Internal
    used = {each.object_name: each.slots for each in membership.earlier}
    added = Registration(membership.name, place, register)
    ledger.register_people(tx, locked, content.dataset_id, added=added, used=used)


def pin(tx: WriteSession, dataset_id: str) -> Content | None:
    """Return the content in force, which the caller pins to a job; None without one.

    The dataset is locked until the transaction ends. So the content's table cannot be deleted before the job names it.
    """
    dataset = repository.lock(tx, dataset_id)
    if dataset is None or dataset.deleted_at is not None:
        return None
    return repository.find_in_force(tx, dataset_id)


def requeue_stale(tx: WriteSession, queue: TaskQueue) -> None:
    """Queue stale contents again.

    A content is stale if its lease and its pause have ended, or if its message may be lost.
    """
    moment = now()
    expired = _idle_since(moment)
    waiting = Content.lease_until.is_(None) & (Content.queued_at < moment - timedelta(seconds=REQUEUE_SECONDS))
    alive = Content.dataset_id.in_(select(Dataset.id).where(Dataset.deleted_at.is_(None)))
    stale = select(Content).where(Content.status == "received", alive, or_(expired, waiting))
    for content in tx.scalars(stale.with_for_update(skip_locked=True)).all():
        content.lease_until, content.queued_at = None, moment
        send_after_commit(tx, queue, content.id)


def send_after_commit(tx: WriteSession, queue: TaskQueue, content_id: str) -> None:
    tx.after_commit(lambda: queue.send(INGEST_CONTENT, content_id))


def _idle_since(moment: datetime) -> ColumnElement[bool]:
    """Return the condition that a content's lease and the following pause have ended.

    A worker may crash without any fault of the file. So a crash never rejects a content. If a file does crash workers,
    its pauses grow with the number of attempts, and other contents are ingested in between.
    """
    kind = Content.lease_until.type
    ends = [(Content.attempts < attempts, literal(moment - pause, kind)) for attempts, pause in PAUSES.items()]
    return Content.lease_until < case(*ends, else_=literal(moment - LONGEST_PAUSE, kind))


def _change(tx: WriteSession, held: Claim, **values: Any) -> bool:
    changed = update(Content).where(*_fence(held)).values(**values).returning(Content.id)
    return tx.execute(changed, execution_options={"synchronize_session": False}).one_or_none() is not None


def _fence(held: Claim) -> tuple[ColumnElement[bool], ...]:
    return (
        Content.id == held.content_id,
        Content.fencing_token == held.fencing_token,
        Content.status == "received",
    )
