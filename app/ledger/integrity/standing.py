"""Verification of one account on request, without locks: its chain, its balance and its checkpoints."""

from sqlalchemy import select

from app.db import ReadSession
from app.hashchain import digest
from app.ledger.account import locked_account
from app.ledger.context import LedgerContext
from app.ledger.integrity import chain, checkpoints
from app.ledger.integrity.chain import Head, Mismatch
from app.ledger.models import Account, Checkpoint


def verify_account(context: LedgerContext, session: ReadSession, dataset_id: str) -> bool:
    """Whether the account of a dataset equals the sum of its entries.

    Checkpoints are read first, then the row of the account, then its entries. Entries up to the row's sequence number
    never change, so other transactions do not disturb the check. A checkpoint of a later entry means that entries were
    lost. The check is narrower than :func:`app.ledger.integrity.verification.verify`, which locks the accounts.

    Raises:
        NotFound: the dataset has no account.
    """
    account = locked_account.read_account(session, dataset_id)
    marks = session.scalars(select(Checkpoint).where(Checkpoint.account_id == account.id)).all()
    session.refresh(account, ["sequence", "head_hash", "limits", "balance"])
    try:
        head, points = _replay(session, account, frozenset(mark.account_sequence for mark in marks))
    except Mismatch:
        return False
    return (
        head.balance is not None
        and head.entry_hash == account.head_hash
        and head.balance.to_columns() == account.stored
        and all(points.get(mark.account_sequence) == (mark.account_head, mark.balance_hash) for mark in marks)
        and all(checkpoints.is_signed(mark, context.signer) for mark in marks)
    )


def _replay(session: ReadSession, account: Account, wanted: frozenset[int]) -> tuple[Head, dict[int, tuple[str, str]]]:
    """Replay the chain up to the account's sequence number.

    Returns:
        The head, and the hashes of entry and balance at each ``wanted`` sequence number.

    Raises:
        Mismatch: an entry does not verify, or is missing.
    """
    head, points = Head(), dict[int, tuple[str, str]]()
    for entry, reached in chain.replay(head, chain.read_after(session, account.id, 0)):
        if entry.sequence > account.sequence:
            break
        head = reached
        if entry.sequence in wanted and head.balance is not None:
            points[entry.sequence] = (head.entry_hash, digest(head.balance.to_json()))
    if head.sequence != account.sequence:
        raise Mismatch
    return head, points
