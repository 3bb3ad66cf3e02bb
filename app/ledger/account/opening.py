"""Opening an account for a population, or a further dataset's share in it."""

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import select

from app.db import ReadSession, WriteSession, generate_id, now
from app.errors import InvalidRequest, StateConflict
from app.hashchain import take_lock
from app.ledger.account import locked_account
from app.ledger.context import LedgerContext
from app.ledger.entries import admission
from app.ledger.entries.balance import ACCOUNT_OPENED, Balance, LedgerEvent, Share, apply
from app.ledger.entries.meter import Pot, filter_pot, make_total_pot
from app.ledger.integrity import chain, snapshots
from app.ledger.integrity.chain import Head
from app.ledger.models import Account, Entry, LedgerDataset
from app.privacy.accounting import ORDERS
from app.privacy.discretisation import LEAST_DELTA
from app.privacy.filter import design
from app.privacy.relation import Relation

LEAST_EPSILON: Final = 0.001
"""Least limit of an account, a tranche, a cap or an allocation; at most deltas, a filter needs more than this."""
_STEP: Final = 0.0001
"""Suggested limits are multiples of this."""
_DATASET_ID: Final = re.compile(r"ds_[0-9a-z]{26}")
_NO_SUCH_POPULATION: Final = (
    "No population of yours has this name, and an account for it would not protect the people of that dataset. State "
    "the member 'population' of the dataset, or choose a name that is not the id of a dataset."
)


def open_account(
    context: LedgerContext,
    tx: WriteSession,
    *,
    owner_id: str,
    population: str,
    dataset_id: str,
    unit: Mapping[str, Any],
    slots: int,
    facts: str,
    epsilon: float,
    delta: float,
) -> None:
    """Open the account of (owner, population), or add a dataset with a cap.

    ``facts``: digest of the dataset's declared facts; its jobs are compared with it.

    Raises:
        InvalidRequest: at ``/budget/epsilon`` or ``/budget/delta``; at ``/population`` for a new one that is named like
            another dataset, because its owner expects that dataset's account.
        StateConflict: the population has an account with another delta or unit, or a frozen one.
    """
    check_delta(delta, slots, "/budget/delta")
    pot = make_design_pot(epsilon, delta, context.max_epsilon, "/budget/epsilon")
    stated = {key: value for key, value in unit.items() if value is not None}
    take_lock(tx, f"{owner_id}|{population}")
    named = (Account.owner_id == owner_id, Account.population == population)
    account_id = tx.scalar(select(Account.id).where(*named))
    if account_id is None:
        if population != dataset_id and _DATASET_ID.fullmatch(population):
            raise InvalidRequest.at("/population", _NO_SUCH_POPULATION)
        account_id = generate_id("acc")
        share = Share(slots, None, facts=facts)
        balance = _fresh_balance(owner_id, population, stated, pot, {dataset_id: share})
        insert(context, tx, account_id, dataset_id, balance)
    else:
        _join(context, tx, account_id, dataset_id, unit=stated, share=Share(slots, pot, facts=facts))
    tx.add(LedgerDataset(dataset_id=dataset_id, account_id=account_id, refused=0))
    tx.flush()


def check_delta(delta: float, slots: int, pointer: str) -> None:
    if not (math.isfinite(delta) and LEAST_DELTA <= delta <= 1 / (10 * slots)):
        raise InvalidRequest.at(pointer, f"Use a number of at least {LEAST_DELTA:g} and at most 1/(10 slots).")


def check_epsilon(epsilon: float, max_epsilon: float, pointer: str) -> None:
    if not (math.isfinite(epsilon) and 0 < epsilon <= max_epsilon):
        raise InvalidRequest.at(pointer, f"Use a positive number of at most {max_epsilon:g}.")


def make_design_pot(epsilon: float, delta: float, max_epsilon: float, pointer: str, above: float = 0.0) -> Pot:
    """An empty filter for ``(epsilon, delta)``; ``above``: the limit to which ``epsilon`` is added.

    Raises:
        InvalidRequest: at ``pointer``.
    """
    check_epsilon(epsilon, max_epsilon, pointer)
    if not _admits_jobs(epsilon, delta):
        raise InvalidRequest.at(pointer, _suggest_limit(delta, above))
    return filter_pot(design(epsilon, delta))


def _admits_jobs(epsilon: float, delta: float) -> bool:
    """Whether a filter of this limit admits any event. Then filters of higher limits do, too."""
    if epsilon < LEAST_EPSILON * (1 - 1e-9):  # a difference of two limits is rounded
        return False
    try:
        design(epsilon, delta)
    except ValueError:
        return False
    return True


def _suggest_limit(delta: float, above: float) -> str:
    steps = range(round(LEAST_EPSILON / _STEP), round(1 / _STEP))
    least = steps[bisect_left(steps, 1, key=lambda step: int(_admits_jobs(step * _STEP, delta)))] * _STEP
    if above == 0:
        return f"Use a number of at least {least:g}; a lower limit admits no useful job."
    return (
        f"This increase is too small. Use at least {math.ceil((above + least) / _STEP - 1e-6) * _STEP:.10g}: the part "
        f"above {above:.10g}, the highest limit so far, must be at least {least:g} at its delta."
    )


def _fresh_balance(
    owner_id: str, population: str, unit: Mapping[str, Any], pot: Pot, datasets: Mapping[str, Share]
) -> Balance:
    return Balance(
        owner_id=owner_id,
        population=population,
        relation=Relation.ZERO_OUT,
        unit=unit,
        total=make_total_pot(pot.epsilon, pot.delta, ORDERS),
        tranches=(pot,),
        datasets=datasets,
    )


def insert(context: LedgerContext, tx: WriteSession, account_id: str, dataset_id: str, balance: Balance) -> Account:
    """Add a new account with nothing spent."""
    account = Account(id=account_id, owner_id=balance.owner_id, population=balance.population, frozen_at=None)
    event = LedgerEvent(1, ACCOUNT_OPENED, dataset_id, None, {"balance": balance.to_json()})
    balance = apply(None, event)
    entry = chain.link(account_id, Head(), event, now(), admission.compose(balance))
    account.sequence, account.head_hash, account.checkpoint = 1, entry.entry_hash, 0
    stored = balance.to_columns()
    account.limits, account.balance = stored.limits, stored.amounts
    account.epsilon_used, account.epsilon_limit = entry.epsilon_after, balance.total.epsilon
    snapshots.take(context.signer, account, balance)
    tx.add_all((Entry(**asdict(entry)), account))
    return account


def find_any_dataset(session: ReadSession, account_id: str) -> str | None:
    """The first of the account's datasets by id; None if their rows are missing."""
    query = select(LedgerDataset.dataset_id).where(LedgerDataset.account_id == account_id)
    return session.scalars(query.order_by(LedgerDataset.dataset_id)).first()


def _join(
    context: LedgerContext, tx: WriteSession, account_id: str, dataset_id: str, *, unit: Mapping[str, Any], share: Share
) -> None:
    locked = locked_account.lock_active(context, tx, find_any_dataset(tx, account_id) or dataset_id)
    cap = share.cap
    assert cap is not None
    same = (cap.delta, unit, Relation.ZERO_OUT) == (
        locked.balance.total.delta,
        locked.balance.unit,
        locked.balance.relation,
    )
    if not same:
        raise StateConflict("This population has an account with another delta or privacy unit.")
    if dataset_id in locked.balance.datasets:
        raise StateConflict("The dataset has its account already.")
    locked.append(ACCOUNT_OPENED, dataset_id, {"share": share.to_json()})
