"""An account's hash chain: its entries, their replay and its newest entries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rfc8785 import CanonicalizationError
from sqlalchemy import Row, and_, bindparam, func, select

from app.db import ReadSession
from app.hashchain import End, format_instant, hash_entry
from app.ledger.entries.balance import Balance, LedgerEvent, apply
from app.ledger.models import Checkpoint, Entry

_PAGE = 256
_ENTRIES = Entry.metadata.tables[Entry.__tablename__]
_NEWEST = (
    select(func.max(Checkpoint.sequence).label("newest"))
    .where(Checkpoint.account_id == bindparam("of_account"))
    .subquery()
)
_BEHIND = and_(_ENTRIES.c.account_id == bindparam("of_account"), _ENTRIES.c.sequence > bindparam("behind"))
_TAIL = (
    select(_NEWEST.c.newest, *_ENTRIES.c)
    .select_from(_NEWEST.outerjoin(_ENTRIES, _BEHIND))
    .order_by(_ENTRIES.c.sequence)
)


class Mismatch(Exception):
    """Stored data does not verify; the account is frozen."""


@dataclass(frozen=True, slots=True)
class Head(End):
    """The end of an account's chain, and its balance: None before the first entry."""

    balance: Balance | None = None


@dataclass(frozen=True, slots=True)
class Ends:
    """The newest entry and checkpoint of an account, read while waiting for its lock: perhaps too low."""

    sequence: int
    checkpoint: int

    def within(self, sequence: int, checkpoint: int) -> bool:
        """Whether no entry or checkpoint is newer than the account's row states."""
        return self.sequence <= sequence and self.checkpoint <= checkpoint


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is about to be written, column by column."""

    account_id: str
    sequence: int
    at: datetime
    kind: str
    dataset_id: str
    job_id: str | None
    body: dict[str, Any]
    epsilon_after: float
    entry_hash: str
    previous_hash: str


Link = Entry | Row[Any]
"""An entry, or the row of one."""


def compute_entry_hash(entry: Link) -> str:
    """SHA-256 of the entry's columns, including the previous hash."""
    return hash_entry(entry.sequence, entry.previous_hash, _content_of(entry))


def describe(entry: Link) -> dict[str, Any]:
    """Every member that the entry's hash covers, and the hash."""
    named = {"sequence": entry.sequence, "previous_hash": entry.previous_hash, "entry_hash": entry.entry_hash}
    return {**_content_of(entry), "body": entry.body, **named}


def link(account_id: str, head: Head, event: LedgerEvent, at: datetime, epsilon_after: float) -> Draft:
    """The entry that extends the chain from ``head``."""
    return Draft(
        account_id=account_id,
        sequence=event.sequence,
        at=at,
        kind=event.kind,
        dataset_id=event.dataset_id,
        job_id=event.job_id,
        body=dict(event.body),
        epsilon_after=epsilon_after,
        entry_hash=head.extend(_content(account_id, at, event, epsilon_after)).entry_hash,
        previous_hash=head.entry_hash,
    )


def replay(head: Head, entries: Iterable[Link]) -> Iterator[tuple[Link, Head]]:
    """Yield each entry, checked against the one before, and the head after it.

    Raises:
        Mismatch: at the first entry that does not verify.
    """
    for entry in entries:
        try:
            row = (entry.sequence, entry.previous_hash, entry.entry_hash)
            if entry.sequence != head.sequence + 1 or not head.is_continued_by(*row, _content_of(entry)):
                raise Mismatch
            head = Head(entry.sequence, entry.entry_hash, apply(head.balance, _event_of(entry)))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, CanonicalizationError) as error:
            raise Mismatch from error
        yield entry, head


def read_after(session: ReadSession, account_id: str, sequence: int) -> Iterator[Link]:
    """Yield the account's entries after ``sequence``, oldest first, read in pages."""
    query = select(*_ENTRIES.c).where(_ENTRIES.c.account_id == account_id).order_by(_ENTRIES.c.sequence).limit(_PAGE)
    while page := session.execute(query.where(_ENTRIES.c.sequence > sequence)).all():
        yield from page
        sequence = page[-1].sequence


def read_tail(session: ReadSession, account_id: str, sequence: int) -> tuple[int, Sequence[Link]]:
    """The account's newest checkpoint (0 if none), and its entries after ``sequence``: in one round trip."""
    rows = session.execute(_TAIL, {"of_account": account_id, "behind": sequence}).all()
    return rows[0].newest or 0, rows if rows[0].sequence is not None else ()


def _event_of(entry: Link) -> LedgerEvent:
    return LedgerEvent(entry.sequence, entry.kind, entry.dataset_id, entry.job_id, entry.body)


def _content_of(entry: Link) -> dict[str, Any]:
    return _content(entry.account_id, entry.at, _event_of(entry), entry.epsilon_after)


def _content(account_id: str, at: datetime, event: LedgerEvent, epsilon_after: float) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "at": format_instant(at),
        "kind": event.kind,
        "dataset_id": event.dataset_id,
        "job_id": event.job_id,
        "body": event.text,
        "epsilon_after": epsilon_after,
    }
