"""Checks of a certificate's claims against the chains."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import exists, select

from app.db import ReadSession
from app.ledger.integrity.chain import compute_entry_hash
from app.ledger.models import Checkpoint, Entry, Reservation
from app.privacy.events import PrivacyEvent, flatten, from_json, merge


def is_covered(session: ReadSession, job_id: str, ran: Sequence[PrivacyEvent]) -> bool:
    """Whether the job's settled charge is intact and covers all events that ran."""
    entry = find_settled(session, job_id)
    return entry is not None and merge(flatten(_events(entry.body["executed"]))) == merge(flatten(ran))


def find_settled(session: ReadSession, job_id: str) -> Entry | None:
    """The entry of the job's settled charge; None if it is missing or altered."""
    row = session.get(Reservation, job_id)
    entry = session.get(Entry, (row.account_id, row.sequence)) if row is not None else None
    if (
        entry is None
        or (entry.kind, entry.job_id) != ("settled", job_id)
        or entry.entry_hash != compute_entry_hash(entry)
    ):
        return None
    return entry


def is_chained(session: ReadSession, job_id: str, stated: Mapping[str, Any]) -> bool:
    """Whether the chains contain the entry and checkpoint of a certificate, after its charge."""
    row = session.get(Reservation, job_id)
    if row is None or stated["sequence"] < row.sequence:
        return False
    entry = session.get(Entry, (row.account_id, stated["sequence"]))
    marked = exists().where(
        Checkpoint.sequence == stated["checkpoint"]["sequence"],
        Checkpoint.checkpoint_hash == stated["checkpoint"]["hash"],
        Checkpoint.account_id == row.account_id,
        Checkpoint.account_head == stated["head"],
    )
    return entry is not None and entry.entry_hash == stated["head"] and bool(session.scalar(select(marked)))


def _events(written: Sequence[Mapping[str, Any]]) -> tuple[PrivacyEvent, ...]:
    return tuple(from_json(dict(event)) for event in written)
