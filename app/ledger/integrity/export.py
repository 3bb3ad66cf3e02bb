"""An account's chain for readers who verify it: entries, checkpoints, signed head and public keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import select

from app.db import ReadSession
from app.errors import StateConflict
from app.hashchain import digest
from app.ledger.account import locked_account
from app.ledger.context import LedgerContext
from app.ledger.integrity import chain, checkpoints
from app.ledger.models import Account, Checkpoint, Entry

_ATTEMPTS: Final = 5
_BUSY: Final = "The account changed while it was read. Try again."
_ENTRIES: Final = Entry.metadata.tables[Entry.__tablename__]


@dataclass(frozen=True, slots=True)
class ChainKey:
    """A public key that signs chains. ``until``: a retired key is valid up to this checkpoint."""

    key_id: str
    public_key: str
    until: int | None


@dataclass(frozen=True, slots=True)
class ChainPart:
    """Entries of a chain in order, with their signatures.

    Attributes:
        account_id: the account's id, which every hash covers.
        keys: the public keys that may have signed.
        entries: each with every member that its hash covers, and with the hash.
        checkpoints: the account's checkpoints of these entries, and in the last part all later ones.
        head: the signed snapshot of the newest state, and the newest entry, ``end``. In the last part only.
        after: sequence number of the last entry before the next part; None in the last part.
    """

    account_id: str
    keys: Sequence[ChainKey]
    entries: Sequence[Mapping[str, Any]]
    checkpoints: Sequence[Mapping[str, Any]]
    head: Mapping[str, Any] | None
    after: int | None


def read_chain(context: LedgerContext, session: ReadSession, dataset_id: str, *, after: int, limit: int) -> ChainPart:
    """Read about ``limit`` entries of the account's chain after number ``after``.

    Raises:
        NotFound: the dataset has no account.
        StateConflict: the account changed again and again.
    """
    account = locked_account.read_account(session, dataset_id)
    for _ in range(_ATTEMPTS):
        before = (account.sequence, account.checkpoint)
        is_last = account.sequence <= after + limit
        entries = _read_entries(session, account.id, after, account.sequence if is_last else after + limit)
        marks = _read_checkpoints(session, account.id, after, None if is_last else after + limit)
        session.refresh(account, ["sequence", "head_hash", "checkpoint", "snapshot"])
        if not is_last or before == (account.sequence, account.checkpoint):
            head = _write_head(account) if is_last else None
            return ChainPart(account.id, _list_keys(context), entries, marks, head, None if is_last else after + limit)
    raise StateConflict(_BUSY)


def _read_entries(session: ReadSession, account_id: str, after: int, last: int) -> list[Mapping[str, Any]]:
    query = select(*_ENTRIES.c).where(_ENTRIES.c.account_id == account_id, _ENTRIES.c.sequence > after)
    rows = session.execute(query.where(_ENTRIES.c.sequence <= last).order_by(_ENTRIES.c.sequence))
    return [chain.describe(row) for row in rows]


def _read_checkpoints(session: ReadSession, account_id: str, after: int, last: int | None) -> list[Mapping[str, Any]]:
    query = select(Checkpoint).where(Checkpoint.account_id == account_id, Checkpoint.account_sequence > after)
    if last is not None:
        query = query.where(Checkpoint.account_sequence <= last)
    rows = session.scalars(query.order_by(Checkpoint.sequence))
    return [checkpoints.describe(row) for row in rows]


def _write_head(account: Account) -> Mapping[str, Any]:
    """The snapshot without its balance, of which the signed statement has the hash."""
    stored = {name: value for name, value in account.snapshot.items() if name != "balance"}
    end = {"sequence": account.sequence, "entry_hash": account.head_hash}
    return {**stored, "balance_hash": digest(account.snapshot["balance"]), "account_id": account.id, "end": end}


def _list_keys(context: LedgerContext) -> list[ChainKey]:
    ring = context.signer.ring
    return [ChainKey(key_id, public, ring.find_end(public, "checkpoint")) for key_id, public in ring.by_id.items()]
