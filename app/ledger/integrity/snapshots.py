"""Signed snapshots of a balance: what the cached one is recomputed from, at a cost that no history makes grow."""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError

from app.db import ReadSession
from app.hashchain import digest
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import Balance
from app.ledger.integrity import chain
from app.ledger.integrity.chain import Ends, Head, Mismatch
from app.ledger.integrity.verified_heads import VerifiedHead, VerifiedHeads
from app.ledger.models import Account
from app.vault.signing import Signer

_MEMBERS = 6
REPLAYED_AT_MOST = 32
"""A new snapshot is taken when so many entries lie behind the last one."""


def take(signer: Signer, account: Account, balance: Balance) -> None:
    """Snapshot the account as it is, with all of the ``balance`` that its head stands for."""
    whole = balance.to_json()
    signed = signer.sign(_statement(account.id, account.sequence, account.head_hash, whole, account.checkpoint))
    account.snapshot = {
        "sequence": account.sequence,
        "head": account.head_hash,
        "balance": whole,
        "checkpoint": account.checkpoint,
        "signature": signed["signature"],
        "key_id": signed["key_id"],
    }


def recompute(context: LedgerContext, session: ReadSession, account: Account, ends: Ends) -> VerifiedHead:
    """Head and balance, from what this process verified before or else the last snapshot, and the entries since.

    ``ends``: read with the account, so that nothing needs to be read where nothing has happened.

    Raises:
        Mismatch: if the snapshot, an entry, the head or the cached balance does not hold, or a checkpoint is newer
            than what the account remembers (its rows were rolled back).
    """
    known = _recall_unmoved(session, context.verified_heads, account, ends)
    if known is not None:
        return known
    seen = _recall_continued(session, context.verified_heads, account) or verify_account(
        session, context.signer, account
    )
    context.verified_heads.remember(account.id, seen)
    return seen


def verify_account(session: ReadSession, signer: Signer, account: Account) -> VerifiedHead:
    """The account's head and balance, from the last snapshot.

    Raises:
        Mismatch: as :func:`recompute`.
    """
    head = _read_trusted(signer, account)
    assert head.balance is not None
    start = VerifiedHead(head, head.balance.to_stored(), int(account.snapshot["checkpoint"]))
    return _replay_to_end(session, account, start)


def _recall_unmoved(session: ReadSession, memory: VerifiedHeads, account: Account, ends: Ends) -> VerifiedHead | None:
    """What this transaction left, or this process verified before, if the account stands there still."""
    known = session.shared.get(("seen", account.id)) or memory.recall(account.id)
    if known is None or not known.still(account, ends):
        return None
    _check_row(known.head.balance, account)
    return known


def _recall_continued(session: ReadSession, memory: VerifiedHeads, account: Account) -> VerifiedHead | None:
    """None if the account does not continue what is remembered; then the snapshot has to say what holds."""
    known = memory.recall(account.id)
    if known is None:
        return None
    try:
        return _replay_to_end(session, account, known)
    except Mismatch:
        memory.forget(account.id)
        return None


def _replay_to_end(session: ReadSession, account: Account, start: VerifiedHead) -> VerifiedHead:
    newest, entries = chain.tail(session, account.id, start.head.sequence)
    head = start.head
    for _, reached in chain.replay(head, entries):
        head = reached
    balance = head.balance
    if (head.sequence, head.entry_hash) != (account.sequence, account.head_hash) or balance is None:
        raise Mismatch
    stored = balance.to_stored() if entries else start.stored
    if stored != account.stored or not newest == start.checkpoint == account.checkpoint:
        raise Mismatch
    _check_row(balance, account)
    return VerifiedHead(head, stored, newest)


def _check_row(balance: Balance | None, account: Account) -> None:
    named = (account.owner_id, account.population, account.frozen_at is not None)
    if balance is None or (balance.owner_id, balance.population, balance.frozen) != named:
        raise Mismatch


def read_sequence(account: Account) -> int:
    """The sequence of the entry that the snapshot was taken after."""
    return int(account.snapshot["sequence"])


def _read_trusted(signer: Signer, account: Account) -> Head:
    try:
        kept = account.snapshot
        statement = _statement(account.id, kept["sequence"], kept["head"], kept["balance"], kept["checkpoint"])
        document = {"statement": statement, "signature": kept["signature"], "key_id": kept["key_id"]}
        if len(kept) != _MEMBERS or not signer.ring.verify(document, ("checkpoint", kept["checkpoint"])):
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
