"""Signed snapshots of a balance. They bound the cost of recomputing the cached balance.

The hashes of a chain need no key, so someone who writes to the database could append entries. A snapshot is therefore
taken with each entry, except reservations, which are signed, and freezes, which grant nothing. Entries of another kind
after the newest snapshot are forged.
"""

from collections.abc import Mapping
from typing import Any

from rfc8785 import CanonicalizationError

from app.db import ReadSession
from app.hashchain import digest
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import FROZEN, RESERVED, Balance
from app.ledger.integrity import chain
from app.ledger.integrity.chain import Ends, Head, Mismatch
from app.ledger.integrity.verified_heads import VerifiedHead, VerifiedHeads
from app.ledger.models import Account
from app.vault.signing import Signer

_MEMBERS = 6
_STRICT = "strict"
"""The member of snapshots that only :data:`UNCOVERED` kinds may follow; earlier versions took others."""
REPLAYED_AT_MOST = 32
"""Number of entries between two snapshots."""
UNCOVERED = frozenset({RESERVED, FROZEN})
"""Kinds of entries that may follow the newest snapshot."""


def take(signer: Signer, account: Account, balance: Balance) -> None:
    """Store a signed snapshot of the account, with the complete ``balance`` at its head."""
    whole = balance.to_json()
    statement = _statement(account.id, account.sequence, account.head_hash, whole, account.checkpoint, strict=True)
    account.snapshot = {
        "sequence": account.sequence,
        "head": account.head_hash,
        "balance": whole,
        "checkpoint": account.checkpoint,
        _STRICT: True,
        **signer.sign_detached(statement)._asdict(),
    }


def recompute(context: LedgerContext, session: ReadSession, account: Account, ends: Ends) -> VerifiedHead:
    """Recompute head and balance from a verified head or the last snapshot.

    ``ends``: read with the account; an unchanged account needs no further query.

    Raises:
        Mismatch: the snapshot, an entry, the head or the cached balance does not verify. Or a checkpoint is newer than
            the account's row, because the row was rolled back.
    """
    current = _recall_unchanged(session, context.verified_heads, account, ends)
    if current is not None:
        return current
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
    head, strict = _read_trusted(signer, account)
    assert head.balance is not None
    start = VerifiedHead(head, head.balance.to_columns(), int(account.snapshot["checkpoint"]))
    return _replay_to_end(session, account, start, strict=strict)


def _recall_unchanged(session: ReadSession, memory: VerifiedHeads, account: Account, ends: Ends) -> VerifiedHead | None:
    """The head that this transaction or process verified before, if the account is unchanged."""
    verified = session.shared.get(("seen", account.id)) or memory.recall(account.id)
    if verified is None or not verified.is_current(account, ends):
        return None
    _check_row(verified.head.balance, account)
    return verified


def _recall_continued(session: ReadSession, memory: VerifiedHeads, account: Account) -> VerifiedHead | None:
    """Replay from the cached head; None if the snapshot is needed.

    It is, if there is no cached head or it does not continue, and if a later entry has a snapshot.
    """
    start = memory.recall(account.id)
    if start is None:
        return None
    try:
        return _replay_to_end(session, account, start, strict=True)
    except Mismatch:
        memory.forget(account.id)
        return None


def _replay_to_end(session: ReadSession, account: Account, start: VerifiedHead, *, strict: bool) -> VerifiedHead:
    """Replay the entries after ``start``; ``strict``: all of them must be :data:`UNCOVERED`."""
    newest, entries = chain.read_tail(session, account.id, start.head.sequence)
    head = start.head
    for entry, reached in chain.replay(head, entries):
        if strict and entry.kind not in UNCOVERED:
            raise Mismatch
        head = reached
    balance = head.balance
    if (head.sequence, head.entry_hash) != (account.sequence, account.head_hash) or balance is None:
        raise Mismatch
    stored = balance.to_columns() if entries else start.stored
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


def _read_trusted(signer: Signer, account: Account) -> tuple[Head, bool]:
    """Verify the snapshot; return the head, and whether the snapshot is strict."""
    try:
        stored = dict(account.snapshot)
        strict = stored.pop(_STRICT, False)
        place = (stored["sequence"], stored["head"], stored["balance"], stored["checkpoint"])
        statement = _statement(account.id, *place, strict=strict)
        signature = (stored["signature"], stored["key_id"])
        is_signed = signer.ring.verify_detached(statement, signature, ("checkpoint", stored["checkpoint"]))
        if len(stored) != _MEMBERS or not is_signed:
            raise Mismatch
        return Head(stored["sequence"], stored["head"], Balance.from_json(stored["balance"])), bool(strict)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, CanonicalizationError) as error:
        raise Mismatch from error


def _statement(
    account_id: str, sequence: int, head: str, balance: Mapping[str, Any], checkpoint: int, *, strict: bool
) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "sequence": sequence,
        "head": head,
        "balance_hash": digest(balance),
        "checkpoint": checkpoint,
        **({_STRICT: strict} if strict else {}),
    }
