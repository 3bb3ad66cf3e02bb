"""Registers of people in a series, in the chains of its accounts.

The list of registers is in the tables of datasets, which carry no signature. Someone who writes to the database could
remove a register from it. Then its people would count in two blocks. So each register is an entry of its block's
account, whose balance is signed. A content comes into force only if its worker used the registers that these balances
hold.

An account that does not verify is frozen, and nothing is registered: unknown means refuse. Each register gets a
checkpoint, so the entry cannot be taken back. Someone who hides a whole account alters the ledger itself. Its
verification reports this.
"""

from collections.abc import Iterator, Mapping
from typing import NewType

from sqlalchemy import func, select

from app.db import ReadSession, WriteSession
from app.errors import StateConflict
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import PEOPLE_REGISTERED, Registration
from app.ledger.integrity import checkpoints
from app.ledger.models import Account, LedgerDataset

ALTERED = "The registers of this series differ from the ledger. The account is frozen; ask the operator."

OwnerAccounts = NewType("OwnerAccounts", tuple[str, ...])
"""All accounts of one owner, locked by a transaction: the id of one dataset of each."""


def lock_accounts(tx: WriteSession, dataset_id: str) -> OwnerAccounts:
    """Lock all accounts of the dataset's owner.

    They are locked in the order of their ids, so that transactions cannot deadlock. Call this before one of them is
    locked.

    Raises:
        NotFound: the dataset has no account.
    """
    owner_id = locked_account.read_account(tx, dataset_id).owner_id
    query = select(func.min(LedgerDataset.dataset_id)).join(Account, Account.id == LedgerDataset.account_id)
    names = tx.scalars(query.where(Account.owner_id == owner_id).group_by(Account.id).order_by(Account.id)).all()
    locked_account.lock_all(tx, names)
    return OwnerAccounts(tuple(names))


def register_people(
    context: LedgerContext,
    tx: WriteSession,
    locked: OwnerAccounts,
    dataset_id: str,
    *,
    added: Registration,
    used: Mapping[str, int],
) -> None:
    """Add a register, if its worker used the registers of all other blocks.

    All accounts of the owner are locked, so two contents cannot be registered at once.

    Args:
        context: verifies the accounts.
        tx: the transaction.
        locked: the result of :func:`lock_accounts` in this transaction, for the owner of the block.
        dataset_id: the block.
        added: the register of its content.
        used: names of the other registers that the worker read -> slots.

    Raises:
        StateConflict: ``used`` differs from the ledger, and the account is frozen. Or another account of the owner does
            not verify.
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
    """
    accounts = _verify(context, tx, locked)
    own = next(each for each in accounts if dataset_id in each.balance.datasets)
    if dict(used) != dict(_list_others(accounts, dataset_id, added.series)):
        locked_account.freeze_durably(tx, own.account, dataset_id)
        raise StateConflict(ALTERED)
    own.append(PEOPLE_REGISTERED, dataset_id, added.to_json())
    checkpoints.append(own)


def find_registration(session: ReadSession, dataset_id: str, register: str) -> Registration | None:
    """Find the registration of a content by the name of its register. The account must be locked and verified."""
    share = locked_account.read_balance(locked_account.read_account(session, dataset_id)).datasets[dataset_id]
    return next((each for each in share.registrations if each.register == register), None)


def _verify(context: LedgerContext, tx: WriteSession, locked: OwnerAccounts) -> tuple[LockedAccount, ...]:
    """Verify all accounts of the owner, each by one of its datasets.

    Raises:
        StateConflict: one of them does not verify.
    """
    accounts = tuple(locked_account.lock_verified(context, tx, name) for name in locked)
    found = tuple(each for each in accounts if each is not None)
    if len(found) < len(accounts):
        raise StateConflict(locked_account.FROZEN_DETAIL)
    return found


def _list_others(accounts: tuple[LockedAccount, ...], dataset_id: str, series: str) -> Iterator[tuple[str, int]]:
    """Yield name and slots of each register of other datasets in the series."""
    for account in accounts:
        for block, share in account.balance.datasets.items():
            if block != dataset_id:
                yield from ((each.register, share.slots) for each in share.registrations if each.series == series)
