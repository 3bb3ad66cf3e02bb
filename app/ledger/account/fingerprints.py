"""Fingerprints: the same bytes of one owner belong to one account, so a repeated upload opens no second budget."""

from sqlalchemy import select

from app.db import WriteSession
from app.hashchain import take_lock
from app.ledger.account import locked_account
from app.ledger.models import Fingerprint


def claim(tx: WriteSession, dataset_id: str, fingerprint: str) -> bool:
    """Claim a keyed fingerprint of a content for the dataset's account; False if another account has it.

    Raises:
        NotFound: the dataset has no account.
    """
    account = locked_account.lock_account_of(tx, dataset_id)
    take_lock(tx, f"{account.owner_id}|{fingerprint}")
    named = (Fingerprint.owner_id == account.owner_id, Fingerprint.fingerprint == fingerprint)
    holder = tx.scalar(select(Fingerprint.account_id).where(*named))
    if holder is None:
        tx.add(Fingerprint(owner_id=account.owner_id, fingerprint=fingerprint, account_id=account.id))
        tx.flush()
    return holder in {None, account.id}
