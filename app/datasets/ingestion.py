"""The states of a content during ingestion: it is claimed, its lease is renewed, and it ends once.

API and worker share these rules. A claim is a compare-and-set that sets a lease and raises the fencing token. A worker
with an older token has lost the content and cannot change it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, case, literal, or_, select, update

from app.datasets import repository
from app.datasets.facts import declared_facts, digest_facts
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.datasets.uploads.models import name_context
from app.db import WriteSession, now
from app.errors import Internal
from app.inference.core.facts import DeclaredFacts
from app.ledger import Ledger
from app.queue import INGEST_CONTENT, TaskQueue
from app.vault.envelope import SealedPart

LEASE_SECONDS = 10.0
REQUEUE_SECONDS = 30
RETRY_SECONDS = 5
LONGEST_RETRY_SECONDS = 600
"""Longest wait between two attempts while a store is full or unavailable; the content is never given up."""
PAUSES = {3: timedelta(), 6: timedelta(minutes=5), 9: timedelta(minutes=30)}
"""Pause before the next attempt, for contents with fewer attempts than the key."""
LONGEST_PAUSE = timedelta(hours=6)


class Rejection(StrEnum):
    """Faults of a whole file; faults of single rows have no code and no count."""

    MALFORMED = "malformed"
    EMPTY = "empty"
    MISSING_COLUMN = "missing_column"
    UNKNOWN_COLUMN = "unknown_column"
    WRONG_TYPE = "wrong_type"
    TOO_LARGE = "too_large"
    TOO_MANY_UNITS = "too_many_units"
    DUPLICATE_CONTENT = "duplicate_content"
    DIGEST_MISMATCH = "digest_mismatch"


class Outcome(StrEnum):
    """The outcome of an ingestion; unless it is ``READY``, the caller deletes the table that it wrote."""

    READY = "ready"
    REJECTED = "rejected"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Claim:
    """The input of one ingestion, without the dataset's key, and its fencing token."""

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
    fencing_token: int
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The encrypted table from the enclave, with its wrapped content key."""

    table_object: str
    wrapped_key: bytes
    fingerprint: str


def claim(tx: WriteSession, content_id: str, lease_seconds: float = LEASE_SECONDS) -> Claim | None:
    """Claim the content for ``lease_seconds``.

    Return None if it has ended, is leased or paused, or if its dataset is deleted.
    """
    moment = now()
    free = or_(Content.lease_until.is_(None), _idle_since(moment))
    alive = Content.dataset_id.in_(select(Dataset.id).where(Dataset.deleted_at.is_(None)))
    taken = tx.execute(
        update(Content)
        .where(Content.id == content_id, Content.status == "received", free, alive)
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
    parts = uploads.parts(tx, content_id)
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
        facts=declared_facts(dataset),
        facts_digest=digest_facts(dataset),
        fencing_token=content.fencing_token,
        lease_seconds=lease_seconds,
    )


def heartbeat(tx: WriteSession, held: Claim) -> bool:
    """Extend the lease; return False if another worker holds the content or it has ended."""
    return _change(tx, held, lease_until=now() + timedelta(seconds=held.lease_seconds))


def release(tx: WriteSession, held: Claim, *, counted: bool) -> bool:
    """Give the content back for another attempt after ``RETRY_SECONDS``.

    Set ``counted`` if the file may have caused the failure. A worker that is being stopped does not count as an
    attempt.
    """
    return _give_back(tx, held, RETRY_SECONDS, attempts=Content.attempts - (0 if counted else 1))


def postpone(tx: WriteSession, held: Claim) -> bool:
    """Give the content back because the store is full or unavailable.

    This does not count as an attempt. The wait is half the content's age, between ``RETRY_SECONDS`` and
    ``LONGEST_RETRY_SECONDS``.
    """
    age = (now() - held.received_at).total_seconds()
    wait = min(max(age / 2, RETRY_SECONDS), LONGEST_RETRY_SECONDS)
    return _give_back(tx, held, wait, attempts=Content.attempts - 1)


def _give_back(tx: WriteSession, held: Claim, seconds: float, **values: Any) -> bool:
    return _change(tx, held, lease_until=now() + timedelta(seconds=seconds), **values)


def reject(tx: WriteSession, held: Claim, reason: Rejection, columns: Sequence[str] = ()) -> bool:
    """Reject the content because of a fault of the file; the content in force stays in force.

    ``columns`` are the names in the header or the declaration that the fault is about.
    """
    names = list(columns) or None
    ended = {"status": "rejected", "rejection": str(reason), "rejection_columns": names, "ended_at": now()}
    return _change(tx, held, lease_until=None, **ended)


def mark_ready(tx: WriteSession, ledger: Ledger, held: Claim, stored: StoredTable) -> Outcome:
    """Make the parsed content ready.

    It comes into force unless a newer content is ready. The ledger records each replacement of a content.

    Returns:
        ``LOST`` if the dataset is deleted or the lease is lost, and ``REJECTED`` if another population of the owner
        has the same file; ``READY`` otherwise.
    """
    dataset = repository.lock(tx, held.dataset_id)
    content = tx.scalars(select(Content).where(*_fence(held)).with_for_update()).one_or_none()
    if content is None or dataset is None or dataset.deleted_at is not None:
        return Outcome.LOST
    before = repository.in_force(tx, dataset.id)
    content.ended_at, content.lease_until = now(), None
    private = dataset.sensitivity == "private"
    if private and not ledger.claim_fingerprint(tx, dataset.id, stored.fingerprint):
        content.status, content.rejection = "rejected", str(Rejection.DUPLICATE_CONTENT)
        return Outcome.REJECTED
    content.status, content.table_object, content.wrapped_key = "ready", stored.table_object, stored.wrapped_key
    if private and before is not None and before.version < content.version:
        ledger.content_replaced(tx, dataset.id, content.version)
    return Outcome.READY


def pin(tx: WriteSession, dataset_id: str) -> Content | None:
    """Return the content in force for a job to pin.

    It locks the dataset, so that the content cannot be disposed of before the transaction ends.
    """
    dataset = repository.lock(tx, dataset_id)
    if dataset is None or dataset.deleted_at is not None:
        return None
    return repository.in_force(tx, dataset_id)


def requeue_stale(tx: WriteSession, queue: TaskQueue) -> None:
    """Queue contents again whose lease has expired or whose message may be lost."""
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
    """Return the condition that a content's lease and its pause have ended.

    Crashing workers do not prove that the file is at fault, so a content is never rejected for them. The growing pauses
    keep a file that crashes workers from blocking other contents.
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
