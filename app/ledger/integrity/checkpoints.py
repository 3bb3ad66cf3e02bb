"""The global chain of signed checkpoints over the accounts' heads; it prevents truncation of their chains."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import func, select

from app.db import ReadSession, WriteSession, now
from app.hashchain import End, check_key, digest, format_instant, take_lock
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.integrity import snapshots
from app.ledger.integrity.high_water_mark import describe_balance
from app.ledger.models import Account, Checkpoint
from app.vault.signing import Signer


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """The checkpoint in a certificate, and the account's entry that it covers."""

    sequence: int
    checkpoint_hash: str
    account_sequence: int
    account_head: str


NAME = "ledger_checkpoints"


def checkpoint(context: LedgerContext, tx: WriteSession, dataset_id: str) -> CheckpointRef:
    """Append a checkpoint of the dataset's account: before each unseal and each publication.

    Raises:
        NotFound, StateConflict: as :func:`app.ledger.account.locked_account.lock_active`.
        DependencyUnavailable: as :func:`append`.
    """
    return append(locked_account.lock_active(context, tx, dataset_id))


def append(locked: LockedAccount, above: int | None = None, *, vital: bool = True) -> CheckpointRef:
    """Append a checkpoint of the account's head, and take a snapshot of its balance.

    ``above``: in a reconciliation, the sequence number of the newest mark (0 if there is none). ``vital``: whether
    a mark that cannot be written is an error. If not, the next checkpoint writes it.

    Raises:
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    tx, account = locked.tx, locked.account
    if above is None:
        locked.context.check_mark(tx)
    row = note(locked.context, tx, account, above or 0, locked.balance.to_json(), vital=vital)
    account.checkpoint = row.sequence
    snapshots.take(locked.context.signer, account, locked.balance)
    tx.flush()
    locked.remember()
    return CheckpointRef(row.sequence, row.checkpoint_hash, row.account_sequence, row.account_head)


def note(
    context: LedgerContext,
    tx: WriteSession,
    account: Account,
    above: int,
    balance: Mapping[str, Any] | None = None,
    *,
    vital: bool = True,
) -> Checkpoint:
    """Append a checkpoint of the account's current state; the mark follows once it is durable.

    ``balance``: the balance at the head; by default the cached one, for an account that does not verify.

    Raises:
        DependencyUnavailable: this process's key has retired, so its signature would not be trusted.
    """
    content = {"limits": account.limits, "balance": account.balance} if balance is None else balance
    take_lock(tx, NAME)
    last = tx.scalars(select(Checkpoint).order_by(Checkpoint.sequence.desc()).limit(1)).one_or_none()
    check_key(context.signer, last.key_id if last else None)
    if last is None and context.mark is not None:
        context.mark.begin(account.id)
    row = Checkpoint(
        at=now(),
        account_id=account.id,
        account_sequence=account.sequence,
        account_head=account.head_hash,
        balance_hash=digest(content),
    )
    before = End(last.sequence, last.checkpoint_hash) if last else End()
    end = before.extend(_content(row), above=above)
    row.sequence, row.previous_hash, row.checkpoint_hash = end.sequence, before.entry_hash, end.entry_hash
    row.signature, row.key_id = context.signer.sign_detached(_statement(row))
    tx.add(row)
    tx.flush()
    if context.mark is not None:
        tx.after_commit(partial(context.mark.advance, row, describe_balance(account)), vital=vital)
    return row


def find_newest_checkpoint(tx: WriteSession) -> int:
    """The sequence of the newest checkpoint; 0 if there is none. No other is appended until ``tx`` ends."""
    take_lock(tx, NAME)
    return tx.scalar(select(func.max(Checkpoint.sequence))) or 0


def audit(session: ReadSession, signer: Signer) -> Iterator[tuple[Checkpoint, bool]]:
    """Yield every checkpoint, oldest first, and whether it verifies and follows the one before."""
    end = End()
    query = select(Checkpoint).order_by(Checkpoint.sequence)
    for row in session.scalars(query.execution_options(populate_existing=True, yield_per=256)):
        follows = end.is_continued_by(row.sequence, row.previous_hash, row.checkpoint_hash, _content(row))
        yield row, follows and is_signed(row, signer)
        end = End(row.sequence, row.checkpoint_hash)


def is_signed(row: Checkpoint, signer: Signer) -> bool:
    """Whether the checkpoint has a valid signature."""
    return signer.ring.verify_detached(_statement(row), (row.signature, row.key_id), ("checkpoint", row.sequence))


def describe(row: Checkpoint) -> dict[str, Any]:
    """Every member that the checkpoint's hash covers, the hash and its signature."""
    named = ("sequence", "previous_hash", "checkpoint_hash", "signature", "key_id")
    return {**_content(row), **{name: getattr(row, name) for name in named}}


def _statement(row: Checkpoint) -> dict[str, Any]:
    return {"checkpoint_hash": row.checkpoint_hash, "sequence": row.sequence}


def _content(row: Checkpoint) -> Mapping[str, Any]:
    return {
        "at": format_instant(row.at),
        "account_id": row.account_id,
        "account_sequence": row.account_sequence,
        "account_head": row.account_head,
        "balance_hash": row.balance_hash,
    }
