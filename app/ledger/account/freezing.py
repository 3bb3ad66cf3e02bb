"""Frozen accounts: how a freeze survives a restore of the database, and how an operator ends it.

A reconciliation freezes an account again, unless its mark records the end of the freeze.

Any process that detects a fault freezes the account, also one that may not write the mark. A worker then looks for
frozen accounts whose mark does not record the freeze. It appends a checkpoint for each account and marks that.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from sqlalchemy import select

from app.db import ReadSession, WriteSession
from app.errors import InvalidRequest, StateConflict
from app.ledger.account import causes, locked_account, opening
from app.ledger.account.locked_account import Cause, LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import UNFROZEN
from app.ledger.integrity import checkpoints, verification
from app.ledger.integrity.high_water_mark import describe_balance
from app.ledger.models import Account, Checkpoint

NOT_FROZEN: Final = "The account is not frozen."
_NO_REASON: Final = "State the reason why the freeze ends: the ledger and the audit log keep it."
_CANNOT_END: Final = (
    "Such a freeze cannot be ended. Run 'corevaultd verify', and declare the data again under another population."
)
TAMPERED: Final = f"The account was frozen because stored data did not verify. {_CANNOT_END}"
UNKNOWN: Final = (
    "The account was frozen for an unknown cause, perhaps by an earlier version. The cause may be tampering. "
    f"{_CANNOT_END}"
)


def freeze(tx: WriteSession, dataset_id: str, cause: Cause) -> None:
    """Stop all spending of the dataset's account. Charges stay."""
    locked_account.freeze(tx, locked_account.lock_account_of(tx, dataset_id), dataset_id, cause)


def list_unmarked_freezes(context: LedgerContext, session: ReadSession) -> list[str]:
    """The ids of frozen accounts whose mark does not record the freeze; empty without a mark.

    Raises:
        DependencyUnavailable: the mark cannot be reached.
    """
    if context.mark is None:
        return []
    frozen = session.scalars(select(Account.id).where(Account.frozen_at.is_not(None)).order_by(Account.id))
    return context.mark.without_freeze(frozen.all())


def mark_freeze(context: LedgerContext, tx: WriteSession, account_id: str) -> None:
    """Write the mark of a frozen account once ``tx`` is durable. May be repeated; does nothing without a mark.

    Raises:
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    if context.mark is None:
        return
    account = locked_account.lock_account(tx, account_id)
    if account is None or account.frozen_at is None:
        return
    context.check_mark(tx)
    dataset_id = opening.find_any_dataset(tx, account_id)
    locked = locked_account.lock_verified(context, tx, dataset_id) if dataset_id is not None else None
    if locked is None:
        checkpoints.note(context, tx, account, 0)
    elif (row := _covering(tx, account)) is not None:  # it is durable, but its mark was not written
        tx.after_commit(partial(context.mark.advance, row, describe_balance(account)), vital=True)
    else:
        checkpoints.append(locked)


def unfreeze(context: LedgerContext, tx: WriteSession, dataset_id: str, reason: str) -> None:
    """End a freeze that a run caused, and record that in the mark.

    A process that may only read the mark, as the API may be, leaves it to the next checkpoint. Until then a restored
    database is frozen again, which is safe.

    Raises:
        InvalidRequest: the reason is blank.
        NotFound: the dataset has no account.
        StateConflict: the account is not frozen, does not verify, or was frozen because of a mismatch. An unknown cause
            is refused too, because it may be a mismatch.
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    if not reason.strip():
        raise InvalidRequest.at("/reason", _NO_REASON)
    account = locked_account.lock_account_of(tx, dataset_id)
    if account.frozen_at is None:
        raise StateConflict(NOT_FROZEN)
    locked = locked_account.lock_verified(context, tx, dataset_id)
    cause = causes.read_cause(tx, account)
    if locked is None or cause == Cause.MISMATCH or not verification.is_balanced(tx, context.signer, account):
        raise StateConflict(TAMPERED)
    if cause != Cause.RUN:
        raise StateConflict(UNKNOWN)
    context.check_mark(tx)
    lift(locked, dataset_id, {"reason": reason})
    checkpoints.append(locked, vital=False)


def lift(locked: LockedAccount, dataset_id: str, body: Mapping[str, str]) -> None:
    """Append the end of a freeze to the account's chain."""
    locked.account.frozen_at = None
    locked.append(UNFROZEN, dataset_id, body)


def _covering(session: ReadSession, account: Account) -> Checkpoint | None:
    """The checkpoint of the freeze, if there is one. The account's chain holds, so its head identifies it."""
    of_head = (Checkpoint.account_id == account.id, Checkpoint.account_head == account.head_hash)
    return session.scalars(select(Checkpoint).where(*of_head).order_by(Checkpoint.sequence.desc())).first()
