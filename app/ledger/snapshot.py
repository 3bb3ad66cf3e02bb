"""Signed snapshots of a balance: what the cached one is recomputed from, at a cost that no history makes grow."""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError
from sqlalchemy import func, select

from app.db import ReadSession
from app.ledger import chain
from app.ledger.balance import Balance
from app.ledger.chain import Head, Mismatch
from app.ledger.encoding import digest
from app.ledger.models import Account, Checkpoint
from app.vault.signing import Signer

_MEMBERS = 6
REPLAYED_AT_MOST = 8
"""A new snapshot is taken when so many entries lie behind the last one."""


def take(signer: Signer, account: Account, checkpoint: int) -> None:
    """Snapshot the account as it is; ``checkpoint`` is its newest one, 0 if there is none."""
    signed = signer.sign(_statement(account.id, account.sequence, account.head_hash, account.balance, checkpoint))
    account.snapshot = {
        "sequence": account.sequence,
        "head": account.head_hash,
        "balance": account.balance,
        "checkpoint": checkpoint,
        "signature": signed["signature"],
        "key_id": signed["key_id"],
    }


def recompute(session: ReadSession, signer: Signer, account: Account) -> Balance:
    """The balance from the last snapshot and the entries behind it.

    Raises:
        Mismatch: if the snapshot, an entry, the head or the cached balance does not hold, or a checkpoint is newer
            than what the account remembers (its rows were rolled back).
    """
    head = _trusted(signer, account)
    for _, reached in chain.replay(head, chain.after(session, account.id, head.sequence)):
        head = reached
    if (head.sequence, head.entry_hash) != (account.sequence, account.head_hash) or head.balance is None:
        raise Mismatch
    if head.balance.to_json() != account.balance or head.balance.frozen != (account.frozen_at is not None):
        raise Mismatch
    if (head.balance.owner_id, head.balance.population) != (account.owner_id, account.population):
        raise Mismatch
    newest = session.scalar(select(func.max(Checkpoint.sequence)).where(Checkpoint.account_id == account.id))
    if (newest or 0) != checkpoint_of(account):
        raise Mismatch
    return head.balance


def taken_at(account: Account) -> int:
    """The sequence of the entry that the snapshot was taken after."""
    return int(account.snapshot["sequence"])


def checkpoint_of(account: Account) -> int:
    """The newest checkpoint that the account remembers."""
    return int(account.snapshot["checkpoint"])


def _trusted(signer: Signer, account: Account) -> Head:
    try:
        kept = account.snapshot
        statement = _statement(account.id, kept["sequence"], kept["head"], kept["balance"], kept["checkpoint"])
        document = {"statement": statement, "signature": kept["signature"], "key_id": kept["key_id"]}
        if len(kept) != _MEMBERS or not signer.ring.verify(document):
            raise Mismatch
        return Head(kept["sequence"], kept["head"], Balance.from_json(kept["balance"]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, CanonicalizationError) as error:
        raise Mismatch from error


def _statement(
    account_id: str, sequence: int, head: str, balance: Mapping[str, Any], checkpoint: int
) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "sequence": sequence,
        "head": head,
        "balance_hash": digest(balance),
        "checkpoint": checkpoint,
    }
