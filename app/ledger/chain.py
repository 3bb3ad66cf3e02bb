"""An account's chain: each entry holds the hash of the one before, so that none can change or vanish unnoticed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rfc8785 import CanonicalizationError
from sqlalchemy import select

from app.db import ReadSession
from app.ledger.balance import Balance, Happening, apply
from app.ledger.encoding import digest, instant
from app.ledger.models import Entry

GENESIS = "0" * 64


class Mismatch(Exception):
    """Something stored does not hold; the account is frozen for it."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain, and what it adds up to."""

    sequence: int
    entry_hash: str
    balance: Balance | None


def entry_hash(entry: Entry) -> str:
    """SHA-256 over everything that the entry says, the previous hash included."""
    return _hash(
        entry.account_id, entry.at, _happening(entry), epsilon_after=entry.epsilon_after, previous=entry.previous_hash
    )


def link(account_id: str, head: Head, happening: Happening, at: datetime, epsilon_after: float) -> Entry:
    """The entry that extends the chain from ``head``."""
    return Entry(
        account_id=account_id,
        sequence=happening.sequence,
        at=at,
        kind=happening.kind,
        dataset_id=happening.dataset_id,
        job_id=happening.job_id,
        body=dict(happening.body),
        epsilon_after=epsilon_after,
        entry_hash=_hash(account_id, at, happening, epsilon_after=epsilon_after, previous=head.entry_hash),
        previous_hash=head.entry_hash,
    )


def replay(head: Head, entries: Iterable[Entry]) -> Iterator[tuple[Entry, Head]]:
    """Each entry, checked against the one before, and the head after it.

    Raises:
        Mismatch: at the first entry that does not hold.
    """
    for entry in entries:
        try:
            sound = (
                entry.sequence == head.sequence + 1
                and entry.previous_hash == head.entry_hash
                and entry.entry_hash == entry_hash(entry)
            )
            if not sound:
                raise Mismatch
            head = Head(entry.sequence, entry.entry_hash, apply(head.balance, _happening(entry)))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, CanonicalizationError) as error:
            raise Mismatch from error
        yield entry, head


def after(session: ReadSession, account_id: str, sequence: int) -> Iterable[Entry]:
    """The account's entries behind ``sequence``, oldest first."""
    query = select(Entry).where(Entry.account_id == account_id, Entry.sequence > sequence).order_by(Entry.sequence)
    return session.scalars(query.execution_options(populate_existing=True, yield_per=256))


def _happening(entry: Entry) -> Happening:
    return Happening(entry.sequence, entry.kind, entry.dataset_id, entry.job_id, entry.body)


def _hash(account_id: str, at: datetime, happening: Happening, *, epsilon_after: float, previous: str) -> str:
    statement: Mapping[str, Any] = {
        "account_id": account_id,
        "sequence": happening.sequence,
        "at": instant(at),
        "kind": happening.kind,
        "dataset_id": happening.dataset_id,
        "job_id": happening.job_id,
        "body": dict(happening.body),
        "epsilon_after": epsilon_after,
        "previous_hash": previous,
    }
    return digest(statement)
