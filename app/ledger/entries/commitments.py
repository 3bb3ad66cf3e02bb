"""Reservations pin a job's plan, declared facts and cost, and are signed.

The terms are compared before a run and before a release. The hashes of a chain need no key, and the newest entries may
have no signed checkpoint yet. An attacker who writes to the database could replace them. So each reservation is signed
separately.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from app.db import ReadSession
from app.errors import StateConflict
from app.hashchain import digest
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import RESERVED, Balance
from app.ledger.models import Checkpoint, Entry, Reservation

ALTERED = (
    "The job, its plan or the declaration of its dataset differs from its reservation. "
    "The account is frozen; ask the operator."
)
UNSIGNED = "An older version reserved this job without a signature, so it cannot run. Submit the job again."


@dataclass(frozen=True, slots=True)
class Commitment:
    """Digests of a job's plan and of its dataset's declared facts.

    Attributes:
        plan: SHA-256 of the plan's RFC 8785 form, in hexadecimal.
        facts: the same of the declared facts.
        unit: the privacy unit among these facts; accounts of older versions hold it, but no digest.
        slots: likewise.
    """

    plan: str
    facts: str
    unit: Mapping[str, Any]
    slots: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The current terms of a job in the database; a certificate would state ``epsilon`` and ``delta``."""

    dataset_id: str
    commitment: Commitment
    epsilon: float | None
    delta: float | None

    def agree_with(self, body: Mapping[str, Any]) -> bool:
        """Whether these are the terms of the reservation whose entry has this body."""
        pinned = tuple(body.get(name) for name in ("plan", "facts", "epsilon", "delta"))
        return pinned == (self.commitment.plan, self.commitment.facts, self.epsilon, self.delta)


def is_as_declared(balance: Balance, dataset_id: str, commitment: Commitment) -> bool:
    """Whether the facts match the declaration, as far as the account records it."""
    share = balance.datasets[dataset_id]
    unit = {name: value for name, value in commitment.unit.items() if value is not None}
    same = (share.slots, dict(balance.unit)) == (commitment.slots, unit)
    return same and share.facts in {None, commitment.facts}


def sign(locked: LockedAccount, dataset_id: str, job_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Sign ``body`` with the ledger key as the next entry and this job's reservation."""
    place = (locked.account.id, locked.account.sequence + 1, dataset_id, job_id)
    return {**body, **locked.context.signer.sign_detached(_statement(*place, body))._asdict()}


def check(locked: LockedAccount, row: Reservation, terms: Terms | None) -> Mapping[str, Any]:
    """Check the terms of a live reservation and return its body.

    Raises:
        StateConflict: the terms differ, and the account is frozen; or an older version made the reservation.
        DependencyUnavailable: a newer ledger key signed it, which this process does not have.
    """
    entry = locked_account.find_reserved_entry(locked, row.job_id, row.state, row.dataset_id)
    if "signature" not in entry.body:
        raise StateConflict(UNSIGNED)
    if terms is None or not terms.agree_with(entry.body) or not _is_signed(locked.context, locked.tx, entry):
        locked.context.check_key(locked.tx)
        locked_account.freeze_durably(locked.tx, locked.account, row.dataset_id)
        raise StateConflict(ALTERED)
    return entry.body


def has_terms(context: LedgerContext, session: ReadSession, job_id: str, terms: Terms) -> bool:
    """Whether the job's reservation is signed and has these terms; reads, changes nothing."""
    query = select(Entry).where(Entry.job_id == job_id, Entry.kind == RESERVED)
    row = session.get(Reservation, job_id)
    entry = None if row is None else session.scalars(query.where(Entry.account_id == row.account_id)).one_or_none()
    if entry is None or "signature" not in entry.body:
        return False
    return terms.agree_with(entry.body) and _is_signed(context, session, entry)


def _is_signed(context: LedgerContext, session: ReadSession, entry: Entry) -> bool:
    """Whether a key signed the entry that is trusted at its last checkpoint."""
    body = dict(entry.body)
    signature = (body.pop("signature", None), body.pop("key_id", None))
    statement = _statement(entry.account_id, entry.sequence, entry.dataset_id, str(entry.job_id), body)
    before = (Checkpoint.account_id == entry.account_id, Checkpoint.account_sequence < entry.sequence)
    newest = session.scalar(select(func.max(Checkpoint.sequence)).where(*before)) or 0
    return context.signer.ring.verify_detached(statement, signature, ("checkpoint", newest))


def _statement(account_id: str, sequence: int, dataset_id: str, job_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    named = {"account_id": account_id, "sequence": sequence, "dataset_id": dataset_id, "job_id": job_id}
    return {"purpose": "reservation", **named, "body_hash": digest(body)}
