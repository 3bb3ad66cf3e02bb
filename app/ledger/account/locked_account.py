"""A locked: a locked account whose balance has just been recomputed. The only way to extend a chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, cast

from sqlalchemy import ARRAY, String, any_, bindparam, func, select
from sqlalchemy.orm import make_transient_to_detached
from sqlalchemy.orm.attributes import instance_dict, set_committed_value
from sqlalchemy.orm.util import identity_key

from app.db import Prepared, ReadSession, WriteSession, now
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

_ACCOUNTS, _ENTRIES, _CHECKPOINTS = (
    model.metadata.tables[model.__tablename__] for model in (Account, Entry, Checkpoint)
)
_COLUMNS = (
    *(column for column in _ACCOUNTS.c if column.name != "snapshot"),
    *(
        select(func.max(table.c.sequence)).where(table.c.account_id == _ACCOUNTS.c.id).scalar_subquery().label(name)
        for name, table in (("last_entry", _ENTRIES), ("last_checkpoint", _CHECKPOINTS))
    ),
)
_BY_ID = Prepared(select(*_COLUMNS).where(_ACCOUNTS.c.id == bindparam("identifier")).with_for_update(of=_ACCOUNTS))
_JOINED = (
    select(*_COLUMNS, LedgerDataset.dataset_id)
    .join(LedgerDataset, LedgerDataset.account_id == _ACCOUNTS.c.id)
    .with_for_update(of=_ACCOUNTS)
)
_OF_DATASET = Prepared(_JOINED.where(LedgerDataset.dataset_id == bindparam("identifier")))
_OF_DATASETS = Prepared(
    _JOINED.where(LedgerDataset.dataset_id == any_(bindparam("identifiers", type_=ARRAY(String)))).order_by(
        _ACCOUNTS.c.id
    )
)
FROZEN_DETAIL = "The account is frozen because its ledger does not hold, or a run broke its rules; ask the operator."


@dataclass(slots=True)
class LockedAccount:
    """``balance`` is what the entries add up to, not what was cached."""

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
        """Extend the chain by one entry and cache the balance that follows; ``job`` as in :class:`rows.Step`.

        ``epsilon_after``: where the caller knows what :func:`app.ledger.entries.admission.compose` will say.
        """
        account = self.account
        event = LedgerEvent(account.sequence + 1, kind, dataset_id, job_id, body)
        head = Head(account.sequence, account.head_hash, self.balance)
        self.balance = apply(self.balance, event)
        if epsilon_after is None:
            epsilon_after = admission.compose(self.balance)
        entry = chain.link(account.id, head, event, now(), epsilon_after)
        writer.write(self.tx, account, writer.Step(entry, self.balance.to_stored(), job))
        if account.sequence % snapshots.REPLAYED_AT_MOST == 0:
            snapshots.take(self.context.signer, account, self.balance)
        self.remember()

    def remember(self) -> None:
        """Start from here next time, once this is durable."""
        head = Head(self.account.sequence, self.account.head_hash, self.balance)
        seen = VerifiedHead(head, self.account.stored, self.account.checkpoint)
        self.tx.shared["seen", self.account.id] = seen
        self.tx.after_commit(partial(self.context.verified_heads.remember, self.account.id, seen))


@dataclass(frozen=True, slots=True)
class _Locked:
    account: Account
    ends: Ends


def lock_active(context: LedgerContext, tx: WriteSession, dataset_id: str) -> LockedAccount:
    """Lock the dataset's account and recompute its balance.

    Raises:
        NotFound: the dataset has no account.
        StateConflict: the account is frozen, or is now, because something does not hold.
    """
    locked = lock_verified(context, tx, dataset_id)
    if locked is None or locked.balance.frozen:
        raise StateConflict(FROZEN_DETAIL)
    return locked


def lock_verified(context: LedgerContext, tx: WriteSession, dataset_id: str) -> LockedAccount | None:
    """Like :func:`lock_active` for what must go on: None (and frozen) if the account does not hold."""
    found = _locking(tx, _OF_DATASET, dataset_id)
    if found is None:
        raise NotFound
    return _check(context, tx, found, dataset_id)


def lock(tx: WriteSession, dataset_id: str) -> None:
    """Lock the dataset's account until the transaction ends."""
    lock_account_of(tx, dataset_id)


def lock_account_of(tx: WriteSession, dataset_id: str) -> Account:
    """The dataset's account, locked until the transaction ends.

    Raises:
        NotFound: the dataset has no account.
    """
    found = _locking(tx, _OF_DATASET, dataset_id)
    if found is None:
        raise NotFound
    return found.account


def lock_account(tx: WriteSession, account_id: str) -> Account | None:
    found = _locking(tx, _BY_ID, account_id)
    return found.account if found else None


def lock_all(tx: WriteSession, dataset_ids: Sequence[str]) -> None:
    """Lock the accounts of several datasets in one statement, in the order of their ids, for what follows in ``tx``.

    Nothing on SQLite, whose writers are alone.
    """
    if tx.get_bind().dialect.name == "postgresql":
        for row in _OF_DATASETS.rows(tx, {"identifiers": list(dataset_ids)}):
            values = row._asdict()
            _note(tx, values.pop("dataset_id"), values)


def _locking(tx: WriteSession, query: Prepared, identifier: str) -> _Locked | None:
    """What is locked is read once the lock is there (the snapshot only when it is asked for), and not again after."""
    tx.flush()
    held: _Locked | None = tx.shared.get(("locked", identifier))
    if held is not None:
        _take_over(tx, held.account)
        return held
    found = query.rows(tx, {"identifier": identifier})
    if not found:
        return None
    values = found[0]._asdict()
    values.pop("dataset_id", None)
    return _note(tx, identifier, values)


def _note(tx: WriteSession, identifier: str, values: dict[str, Any]) -> _Locked:
    ends = Ends(values.pop("last_entry") or 0, values.pop("last_checkpoint") or 0)
    found = _Locked(_as_read(tx, values), ends)
    for name in (identifier, found.account.id):
        tx.shared["locked", name] = found
    return found


def _as_read(tx: WriteSession, values: Mapping[str, Any]) -> Account:
    held: _Locked | None = tx.shared.get(("locked", values["id"]))
    account = held.account if held else tx.identity_map.get(identity_key(Account, values["id"]))
    if account is None:
        account = cast(Account, Account.__mapper__.class_manager.new_instance())
        instance_dict(account).update(values)
        make_transient_to_detached(account)
        tx.add(account)
        return account
    _take_over(tx, account)
    for name, value in values.items():
        set_committed_value(account, name, value)
    tx.expire(account, ["snapshot"])
    return account


def _take_over(tx: WriteSession, account: Account) -> None:
    """From the session that locked it, one of those in this transaction, to this one."""
    if account in tx:
        return
    other = tx.identity_map.get(identity_key(Account, account.id))
    if other is not None:
        tx.expunge(other)
    tx.add(account)


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
    """The cached balance, good enough to read; nothing fits into it once the account is frozen.

    Raises:
        StateConflict: somebody has edited it, so that it cannot even be read; the next charge will freeze the account.
    """
    try:
        balance = Balance.from_json(account.stored.whole())
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        raise StateConflict(FROZEN_DETAIL) from None
    return replace(balance, frozen=account.frozen_at is not None)


def reserved_entry(locked: LockedAccount, job_id: str, state: str, dataset_id: str) -> Entry:
    """The entry that reserved a live job; an index row that says otherwise freezes the account.

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
    """Why an account was frozen, as its entry says."""

    RUN = "run"
    """A run failed among the rows: the ledger itself holds."""
    MISMATCH = "mismatch"
    """Something stored does not hold."""


def freeze(tx: WriteSession, account: Account, dataset_id: str, cause: Cause = Cause.MISMATCH) -> None:
    """Freeze the account, with an entry where its head still holds (evidence elsewhere is left as it is)."""
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


def _check(context: LedgerContext, tx: WriteSession, found: _Locked, dataset_id: str) -> LockedAccount | None:
    account = found.account
    try:
        seen = snapshots.recompute(context, tx, account, found.ends)
        balance = seen.head.balance
        if balance is None or dataset_id not in balance.datasets:
            raise Mismatch
    except Mismatch:
        context.check_key(tx)  # what others signed since does not hold for a key that has retired
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
