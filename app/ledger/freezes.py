"""Freezes beyond the reach of a restore: what was frozen once is frozen again by a reconciliation.

A freeze happens wherever something does not hold, also in processes that may not write the mark. A worker then looks
for frozen accounts whose mark does not say so, signs each as it stands into the chain of checkpoints, and marks that.
"""

from functools import partial

from sqlalchemy import select

from app.db import ReadSession, WriteSession
from app.ledger import accounts, checkpoints
from app.ledger import book as books
from app.ledger.mark import Mark, marked
from app.ledger.models import Account, Checkpoint
from app.ledger.scribe import Scribe


def unmarked(session: ReadSession, mark: Mark) -> list[str]:
    """The ids of frozen accounts whose mark does not say so.

    Raises:
        DependencyUnavailable: the mark cannot be reached.
    """
    frozen = session.scalars(select(Account.id).where(Account.frozen_at.is_not(None)).order_by(Account.id))
    return [account_id for account_id in frozen if not mark.says_frozen(account_id)]


def carry(tx: WriteSession, scribe: Scribe, mark: Mark, account_id: str) -> None:
    """Mark a frozen account once ``tx`` is durable; harmless to repeat.

    Raises:
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    account = books.lock_account(tx, account_id)
    if account is None or account.frozen_at is None:
        return
    scribe.check_mark(tx)
    dataset_id = accounts.any_dataset(tx, account_id)
    book = books.open_sound(tx, scribe, dataset_id) if dataset_id is not None else None
    if book is None:
        checkpoints.note(tx, scribe, account, 0)
    elif (row := _covering(tx, account)) is not None:  # it is durable, and its mark was lost on the way
        tx.after_commit(partial(mark.advance, row, marked(account)), vital=True)
    else:
        checkpoints.append(book)


def _covering(session: ReadSession, account: Account) -> Checkpoint | None:
    """The checkpoint of the freeze, if there is one; of an account whose chain holds, so that its head tells."""
    of_head = (Checkpoint.account_id == account.id, Checkpoint.account_head == account.head_hash)
    return session.scalars(select(Checkpoint).where(*of_head).order_by(Checkpoint.sequence.desc())).first()
