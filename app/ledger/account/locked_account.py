"""A locked account with a freshly verified balance: the only way to extend a chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from app.db import ReadSession, WriteSession, now
from app.errors import NotFound, StateConflict
from app.hashchain import digest
from app.ledger.context import LedgerContext
from app.ledger.entries import admission, writer
from app.ledger.entries.balance import FROZEN, Balance, LedgerEvent, apply
from app.ledger.entries.balance_columns import BalanceColumns
from app.ledger.integrity import chain, snapshots
from app.ledger.integrity.chain import Ends, Head, Mismatch
from app.ledger.integrity.verified_heads import VerifiedHead
from app.ledger.models import Account, Checkpoint, Entry, LedgerDataset

_LOCKED = (
    select(
        Account,
        *(
            select(func.max(model.sequence)).where(model.account_id == Account.id).scalar_subquery()
            for model in (Entry, Checkpoint)
        ),
    )
    .with_for_update(of=Account)
    .execution_options(populate_existing=True)
)
_BY_ID = _LOCKED.where(Account.id == bindparam("identifier"))
_JOINED = _LOCKED.add_columns(LedgerDataset.dataset_id).join(LedgerDataset, LedgerDataset.account_id == Account.id)
_OF_DATASET = _JOINED.where(LedgerDataset.dataset_id == bindparam("identifier"))
_OF_DATASETS = _JOINED.where(LedgerDataset.dataset_id.in_(bindparam("identifiers", expanding=True))).order_by(
    Account.id
)
FROZEN_DETAIL = "The account is frozen because its ledger does not verify, or a run broke its rules; ask the operator."


@dataclass(slots=True)
class LockedAccount:
    """An account under its lock; ``balance`` is recomputed from the entries, not the cached one."""

    tx: WriteSession
    context: LedgerContext
    account: Account
    balance: Balance

    def append(
        self,
        kind: str,
        dataset_id: str,
        body: Mapping[str, Any],
        job_id: str | None = None,
        *,
        job: str | None = None,
        epsilon_after: float | None = None,
    ) -> None:
        """Extend the chain by one entry and cache the new balance; ``job`` as in :class:`writer.Step`.

        ``epsilon_after``: the result of :func:`app.ledger.entries.admission.compose`, if the caller has it already.
        """
        account = self.account
        event = LedgerEvent(account.sequence + 1, kind, dataset_id, job_id, body)
        head = Head(account.sequence, account.head_hash, self.balance)
        self.balance = apply(self.balance, event)
        if epsilon_after is None:
            epsilon_after = admission.compose(self.balance)
        entry = chain.link(account.id, head, event, now(), epsilon_after)
        writer.write(self.tx, account, writer.Step(entry, self.balance.to_columns(), job))
        if kind not in snapshots.UNCOVERED or account.sequence % snapshots.REPLAYED_AT_MOST == 0:
            snapshots.take(self.context.signer, account, self.balance)
        self.remember()

    def remember(self) -> None:
        """Cache the verified head; other transactions use it once this one is durable."""
        head = Head(self.account.sequence, self.account.head_hash, self.balance)
        seen = VerifiedHead(head, self.account.stored, self.account.checkpoint)
        self.tx.shared["seen", self.account.id] = seen
        self.tx.after_commit(partial(self.context.verified_heads.remember, self.account.id, seen))


@dataclass(frozen=True, slots=True)
class _LockedRow:
    account: Account
    ends: Ends


def lock_active(context: LedgerContext, tx: WriteSession, dataset_id: str) -> LockedAccount:
    """Lock the dataset's account and recompute its balance.

    Raises:
        NotFound: the dataset has no account.
        StateConflict: the account is frozen, or was just frozen because it does not verify.
    """
    locked = lock_verified(context, tx, dataset_id)
    if locked is None or locked.balance.frozen:
        raise StateConflict(FROZEN_DETAIL)
    return locked


def lock_verified(context: LedgerContext, tx: WriteSession, dataset_id: str) -> LockedAccount | None:
    """Like :func:`lock_active`, also for a frozen account. None if it does not verify; then it is frozen."""
    row = _read_locked(tx, _OF_DATASET, dataset_id)
    if row is None:
        raise NotFound
    return _check(context, tx, row, dataset_id)


def lock(tx: WriteSession, dataset_id: str) -> None:
    """Lock the dataset's account until the transaction ends."""
    lock_account_of(tx, dataset_id)


def lock_account_of(tx: WriteSession, dataset_id: str) -> Account:
    """The dataset's account, locked until the transaction ends.

    Raises:
        NotFound: the dataset has no account.
    """
    row = _read_locked(tx, _OF_DATASET, dataset_id)
    if row is None:
        raise NotFound
    return row.account


def lock_account(tx: WriteSession, account_id: str) -> Account | None:
    row = _read_locked(tx, _BY_ID, account_id)
    return row.account if row else None


def lock_all(tx: WriteSession, dataset_ids: Sequence[str]) -> None:
    """Lock and read the accounts of several datasets in one statement.

    In the order of their ids, so that transactions cannot deadlock.

    SQLite needs no locks: it has one writer at a time.
    """
    if tx.get_bind().dialect.name == "postgresql":
        for account, last_entry, last_checkpoint, dataset_id in tx.execute(_OF_DATASETS, {"identifiers": dataset_ids}):
            _share(tx, dataset_id, _LockedRow(account, Ends(last_entry or 0, last_checkpoint or 0)))


def _read_locked(tx: WriteSession, query: Select[Any], identifier: str) -> _LockedRow | None:
    """Read the account under its lock, without the snapshot; None if there is no such account.

    A transaction reads each account once. Its sessions copy the account from one another.
    """
    tx.flush()
    held: _LockedRow | None = tx.shared.get(("locked", tx.shared.get(("account of", identifier))))
    if held is not None:
        return _share(tx, identifier, _LockedRow(tx.merge(held.account, load=False), held.ends))
    row = tx.execute(query, {"identifier": identifier}).first()
    if row is None:
        return None
    account, last_entry, last_checkpoint, *_ = row
    return _share(tx, identifier, _LockedRow(account, Ends(last_entry or 0, last_checkpoint or 0)))


def _share(tx: WriteSession, identifier: str, locked: _LockedRow) -> _LockedRow:
    tx.shared["account of", identifier] = locked.account.id
    tx.shared["locked", locked.account.id] = locked
    return locked


def read_account(session: ReadSession, dataset_id: str) -> Account:
    """The dataset's account as it is stored, for reading.

    Raises:
        NotFound: the dataset has no account.
    """
    query = select(Account).join(LedgerDataset, LedgerDataset.account_id == Account.id)
    account = session.scalars(query.where(LedgerDataset.dataset_id == dataset_id)).one_or_none()
    if account is None:
        raise NotFound
    return account


def read_balance(account: Account) -> Balance:
    """The cached balance, for reading only; it admits nothing once the account is frozen.

    Raises:
        StateConflict: it was edited and cannot be parsed; the next charge will freeze the account.
    """
    try:
        balance = Balance.from_json(account.stored.whole())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise StateConflict(FROZEN_DETAIL) from None
    return replace(balance, frozen=account.frozen_at is not None)


def find_reserved_entry(locked: LockedAccount, job_id: str, state: str, dataset_id: str) -> Entry:
    """The entry that reserved a live job; a contradicting index row freezes the account.

    Raises:
        StateConflict: the chain does not hold the job in this ``state``.
    """
    live = locked.balance.live.get(job_id)
    entry = locked.tx.get(Entry, (locked.account.id, live.sequence)) if live else None
    if live is None or entry is None or live.state != state or digest(entry.body) != live.body_hash:
        freeze_durably(locked.tx, locked.account, dataset_id)
        raise StateConflict(FROZEN_DETAIL)
    return entry


class Cause(StrEnum):
    """Why an account was frozen, as its entry records."""

    RUN = "run"
    """A run failed in the enclave; the ledger itself verifies."""
    MISMATCH = "mismatch"
    """Stored data does not verify."""
    UNKNOWN = "unknown"
    """The chain records no cause: an earlier version froze the account, or its mark did after a restore."""


def freeze(tx: WriteSession, account: Account, dataset_id: str, cause: Cause = Cause.MISMATCH) -> None:
    """Freeze the account. The entry is only appended if the head verifies, so no evidence is changed."""
    if account.frozen_at is not None:
        return
    account.frozen_at = now()
    last = tx.get(Entry, (account.id, account.sequence), populate_existing=True)
    beyond = tx.get(Entry, (account.id, account.sequence + 1))
    if last is None or beyond is not None or last.entry_hash != account.head_hash:
        return
    event = LedgerEvent(account.sequence + 1, FROZEN, dataset_id, None, {"cause": str(cause)})
    try:
        balance = Balance.from_json(account.stored.whole())
        head = Head(account.sequence, account.head_hash, balance)
        entry = chain.link(account.id, head, event, account.frozen_at, admission.compose(balance))
        writer.write(
            tx, account, writer.Step(entry, BalanceColumns(account.limits, {**account.balance, "frozen": True}))
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return


def _check(context: LedgerContext, tx: WriteSession, row: _LockedRow, dataset_id: str) -> LockedAccount | None:
    account = row.account
    try:
        seen = snapshots.recompute(context, tx, account, row.ends)
        balance = seen.head.balance
        if balance is None or dataset_id not in balance.datasets:
            raise Mismatch
    except Mismatch:
        context.check_key(tx)  # newer entries of other processes do not verify under a retired key
        freeze_durably(tx, account, dataset_id)
        return None
    return LockedAccount(tx, context, account, balance)


def freeze_durably(tx: WriteSession, account: Account, dataset_id: str) -> None:
    """Freeze the account here, and also if this transaction is rolled back."""
    freeze(tx, account, dataset_id)
    tx.after_rollback(partial(_freeze_again, account_id=account.id, dataset_id=dataset_id))


def _freeze_again(tx: WriteSession, *, account_id: str, dataset_id: str) -> None:
    account = lock_account(tx, account_id)
    if account is not None:
        freeze(tx, account, dataset_id)
