"""Reconciliation of a restored database with its mark. It only adds charges and freezes.

An account that is behind its mark is charged the difference, order by order. It is frozen if that is impossible: the
mark does not match the account, the charge exceeds its limit, a tranche or the account is lost. It is also frozen if
the mark records a freeze, because such a mark may not include all charges.

A job that was opened before the backup may have a release that the database has lost. If it ran again, it would reveal
more under the old charge. So all such jobs are settled and end without a release.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import select

from app.db import WriteSession
from app.errors import StateConflict
from app.hashchain import take_lock
from app.ledger.account import causes, freezing, locked_account, opening
from app.ledger.account.locked_account import Cause, LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import OPENED, RESERVED, SETTLED, Balance, LedgerEvent, Share, apply
from app.ledger.entries.charge import Pinned
from app.ledger.entries.meter import Meter, Pot
from app.ledger.integrity import checkpoints
from app.ledger.integrity.high_water_mark import State, has_checkpoint
from app.ledger.models import Account, Entry, LedgerDataset
from app.vault.marks import MarkName

UNREADABLE = "The mark of an account that the database does not have cannot be read. Restore the mark."
NO_MARK = "There is no mark. If it is lost, restore it; if there never was one, use --adopt."


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The outcome for an account: ``charged``, ``frozen``, or ``adopted`` (it had no mark before)."""

    account_id: str
    outcome: str


def reconcile(context: LedgerContext, tx: WriteSession, *, adopt: bool) -> list[Reconciled]:
    """Charge or freeze every account that is behind its mark, then advance the mark.

    Raises:
        StateConflict: there is no mark and ``adopt`` is false, a necessary mark cannot be read, or this process keeps
            no mark.
    """
    mark = context.mark
    if mark is None:
        raise StateConflict("No mark is kept here.")
    take_lock(tx, checkpoints.NAME)
    names = mark.names()
    if not names:
        if not adopt:
            raise StateConflict(NO_MARK)
        return [Reconciled(account_id, "adopted") for account_id in sign_anew(context, tx)]
    above = max(name.sequence for name in names)
    missing = [name for name in names if not has_checkpoint(tx, name)]
    return [_reconcile(context, tx, name, mark.read(name), above) for name in missing]


def sign_anew(context: LedgerContext, tx: WriteSession) -> list[str]:
    """Append a checkpoint of every account that verifies, without regard to the mark; return their ids."""
    signed = []
    for account_id in tx.scalars(select(Account.id).order_by(Account.id)).all():
        account, dataset_id = locked_account.lock_account(tx, account_id), opening.find_any_dataset(tx, account_id)
        locked = locked_account.lock_verified(context, tx, dataset_id) if account is not None and dataset_id else None
        if locked is not None:
            checkpoints.append(locked, above=0)
            signed.append(account_id)
    return signed


def _reconcile(context: LedgerContext, tx: WriteSession, name: MarkName, state: State | None, above: int) -> Reconciled:
    account = locked_account.lock_account(tx, name.account)
    if account is None:
        account = _reinsert(context, tx, name, state)
    dataset_id = opening.find_any_dataset(tx, account.id) or ""
    locked = locked_account.lock_verified(context, tx, dataset_id)
    if locked is not None and state is not None and _is_freeze_ended(locked, state):
        freezing.lift(locked, dataset_id, {"mark": str(name)})
    charged = locked is not None and state is not None and not locked.balance.frozen and _charge(locked, state)
    if not charged:
        is_frozen_by_mark = locked is not None and state is not None and state.balance.frozen
        cause = Cause.UNKNOWN if is_frozen_by_mark else Cause.MISMATCH  # a mark does not record the cause
        locked_account.freeze(tx, account, dataset_id, cause)
        locked = locked_account.lock_verified(context, tx, dataset_id)
    if locked is not None:
        checkpoints.append(locked, above)
    else:
        checkpoints.note(context, tx, account, above)
    return Reconciled(account.id, "charged" if charged else "frozen")


def _is_freeze_ended(locked: LockedAccount, state: State) -> bool:
    """Whether the mark records the end of a freeze that the database still has."""
    if not locked.balance.frozen or state.balance.frozen:
        return False
    return causes.read_cause(locked.tx, locked.account) == Cause.RUN


def _charge(locked: LockedAccount, state: State) -> bool:
    """Charge the difference between mark and account; False if that is impossible."""
    if state.balance.frozen or not _is_comparable(locked.balance, state.balance):
        return False
    lost = list(_find_lost(locked.balance, state.balance))
    if not _fits(locked.balance, lost):
        return False
    for index, (dataset_id, pinned) in enumerate(lost):
        job_id = f"lost_{state.name.sequence}_{index}_{locked.account.id}"
        charge = pinned.to_json()
        locked.append(
            RESERVED, dataset_id, {"events": [], "mark": str(state.name), "charge": charge}, job_id, job="placed"
        )
        locked.append(OPENED, dataset_id, {"charge": charge}, job_id, job="moved")
        locked.append(SETTLED, dataset_id, {"executed": []}, job_id, job="moved")
    _settle_opened(locked)
    return True


def _settle_opened(locked: LockedAccount) -> None:
    for job_id, live in locked.balance.live.items():
        if live.state == OPENED:
            reserved = locked.tx.get_one(Entry, (locked.account.id, live.sequence))
            locked.append(SETTLED, reserved.dataset_id, {"executed": []}, job_id, job="moved")


def _is_comparable(here: Balance, there: Balance) -> bool:
    """Whether both are balances of one account, and no tranche is missing here."""
    same = (here.owner_id, here.population, here.total.orders) == (there.owner_id, there.population, there.total.orders)
    orders = [[tranche.orders for tranche in balance.tranches] for balance in (here, there)]
    return same and orders[0][: len(orders[1])] == orders[1]


def _fits(balance: Balance, lost: Sequence[tuple[str, Pinned]]) -> bool:
    for index, (dataset_id, pinned) in enumerate(lost):
        event = LedgerEvent(1, RESERVED, dataset_id, f"lost_{index}", {"charge": pinned.to_json()})
        balance = apply(balance, event)
        if not balance.holds(dataset_id):
            return False
    return True


def _find_lost(here: Balance, there: Balance) -> Iterator[tuple[str, Pinned]]:
    """Yield the missing charges: of the account, of each further tranche, of each cap."""
    opener = next(name for name, share in here.datasets.items() if share.cap is None)
    of_account = _deficit(here.total.meter, there.total.meter), _deficit(here.distance, there.distance)[0]
    nothing = (0,) * len(here.total.orders)
    pairs = zip(here.tranches, there.tranches, strict=False)
    for index, (pot, marked) in enumerate(pairs):
        amounts, distance = of_account if index == 0 else (nothing, 0)
        charge = Pinned(amounts, index, _deficit(pot.meter, marked.meter), (), distance)
        if any((*charge.amounts, *charge.tranche_amounts, distance)):
            yield opener, charge
    for dataset_id, cap, marked in _caps(here, there):
        first = (0,) * len(here.tranches[0].orders)
        charge = Pinned(nothing, 0, first, _deficit(cap.meter, marked.meter))
        if any(charge.cap_amounts):
            yield dataset_id, charge


def _caps(here: Balance, there: Balance) -> Iterator[tuple[str, Pot, Pot]]:
    for dataset_id, share in here.datasets.items():
        marked = there.datasets.get(dataset_id)
        if share.cap is not None and marked is not None and marked.cap is not None:
            yield dataset_id, share.cap, marked.cap


def _deficit(here: Meter, there: Meter) -> tuple[int, ...]:
    """The missing amounts. Reservations here do not count, because they may be voided."""
    return tuple(max(0, marked - spent) for marked, spent in zip(there.spent, here.spent, strict=True))


def _reinsert(context: LedgerContext, tx: WriteSession, name: MarkName, state: State | None) -> Account:
    """Insert a lost account as it was opened, to prevent a second one."""
    if state is None:
        raise StateConflict(UNREADABLE)
    balance = state.balance
    shares = {
        dataset_id: Share(share.slots, _empty_cap(share.cap), facts=share.facts)
        for dataset_id, share in balance.datasets.items()
    }
    fresh = replace(
        balance,
        total=_empty(balance.total),
        tranches=tuple(map(_empty, balance.tranches)),
        distance=Meter(balance.distance.bounds, (0,), (0,)),
        datasets=shares,
        live={},
        settled=0,
        frozen=False,
    )
    opener = next(dataset_id for dataset_id, share in shares.items() if share.cap is None)
    account = opening.insert(context, tx, name.account, opener, fresh)
    tx.add_all(LedgerDataset(dataset_id=dataset_id, account_id=name.account, refused=0) for dataset_id in shares)
    tx.flush()
    return account


def _empty(pot: Pot) -> Pot:
    zeros = (0,) * len(pot.orders)
    return replace(pot, meter=Meter(pot.meter.bounds, zeros, zeros))


def _empty_cap(cap: Pot | None) -> Pot | None:
    return None if cap is None else _empty(cap)
