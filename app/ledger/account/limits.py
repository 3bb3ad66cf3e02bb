"""Changing a limit: lower at once, higher by a further tranche with an epsilon and a delta of its own."""

import math
from typing import Any

from app.db import WriteSession
from app.errors import InvalidRequest, StateConflict
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.account.opening import check_delta, check_epsilon, design_pot
from app.ledger.context import LedgerContext
from app.ledger.entries import admission
from app.ledger.entries.balance import LIMIT_CHANGED
from app.ledger.entries.meter import Pot, filter_pot, total_bounds
from app.ledger.entries.numbers import pack
from app.privacy.filter import Filter


def change_limit(
    context: LedgerContext,
    tx: WriteSession,
    dataset_id: str,
    epsilon: float,
    delta: float | None,
) -> None:
    """Set the dataset's limit to ``epsilon`` in total.

    The limit of the dataset that opened the account is the account's; another's is its cap, which keeps its delta
    (a cap is the owner's rule within the account: what is guaranteed is the account's limit).

    Raises:
        InvalidRequest: at ``/epsilon`` or ``/delta``.
        StateConflict: less than what is spent and reserved, or the account is frozen.
    """
    locked = locked_account.lock_active(context, tx, dataset_id)
    check_epsilon(epsilon, context.max_epsilon, "/epsilon")
    cap = locked.balance.datasets[dataset_id].cap
    if cap is not None:
        _change_cap(locked, dataset_id, cap, epsilon, delta)
    elif epsilon > locked.balance.total.epsilon:
        _raise(locked, dataset_id, epsilon, delta)
    else:
        _lower(locked, dataset_id, epsilon, delta)


def _lower(locked: LockedAccount, dataset_id: str, epsilon: float, delta: float | None) -> None:
    total = locked.balance.total
    _check_same_delta(delta, total.delta)
    if epsilon == total.epsilon:
        return
    if epsilon < admission.compose(locked.balance):
        raise StateConflict("The limit cannot be lower than what is spent and reserved already.")
    locked.append(LIMIT_CHANGED, dataset_id, _body(locked, epsilon, total.delta, None))


def _raise(locked: LockedAccount, dataset_id: str, epsilon: float, delta: float | None) -> None:
    balance, max_epsilon = locked.balance, locked.context.max_epsilon
    if delta is None:
        raise InvalidRequest.at("/delta", "a higher limit needs a delta for the epsilon that is added")
    check_delta(delta, 1, "/delta")
    together = balance.total.delta + delta
    check_delta(together, max(share.slots for share in balance.datasets.values()), "/delta")
    added = epsilon - balance.total.epsilon
    if balance.guaranteed_epsilon + added > max_epsilon:
        raise InvalidRequest.at("/epsilon", f"all that was ever open would exceed {max_epsilon:g}")
    tranche = design_pot(added, delta, max_epsilon, "/epsilon")
    locked.append(LIMIT_CHANGED, dataset_id, _body(locked, epsilon, together, tranche))


def _body(locked: LockedAccount, epsilon: float, delta: float, tranche: Pot | None) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": pack(total_bounds(epsilon, delta, locked.balance.total.orders)),
        "tranche": tranche.to_json() if tranche else None,
        "distance": pack(locked.balance.distance.bounds),
    }


def _change_cap(locked: LockedAccount, dataset_id: str, cap: Pot, epsilon: float, delta: float | None) -> None:
    _check_same_delta(delta, cap.delta)
    if epsilon == cap.epsilon:
        return
    if cap.untouched:
        after = design_pot(epsilon, cap.delta, math.inf, "/epsilon")
    else:
        after = filter_pot(Filter(epsilon, cap.delta, cap.orders, cap.weights))
        if not cap.rebound(epsilon, cap.delta, after.meter.bounds).meter.holds:
            raise StateConflict("The limit cannot be lower than what this dataset's jobs use already.")
    locked.append(LIMIT_CHANGED, dataset_id, {"cap": after.to_json()})


def _check_same_delta(delta: float | None, known: float) -> None:
    if delta is not None and delta != known:
        raise InvalidRequest.at("/delta", "only a higher limit brings a delta; leave it out")
