"""Changing a limit: lower at once, or higher. Above the highest limit so far, a further tranche opens.

The tranches are privacy filters with fixed epsilon and delta. All releases together stay within the sums of both, by
concurrent composition. The limit is a second bound, on the composed total. It can only refuse charges that the tranches
admit, and the proof for the tranches does not use it. So it may fall and rise within the sum of the tranches, also
after releases, at no cost. Only the part above the sum needs a further tranche. The sum is therefore the highest limit
of the account so far. Lowering and raising a limit use up neither epsilon nor delta, and no unspent tranche has to be
closed.
"""

import math
from typing import Any, Final

from app.db import WriteSession
from app.errors import InvalidRequest, StateConflict
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.account.opening import check_delta, check_epsilon, make_design_pot
from app.ledger.context import LedgerContext
from app.ledger.entries import admission
from app.ledger.entries.balance import LIMIT_CHANGED
from app.ledger.entries.meter import Pot, compute_total_bounds, filter_pot
from app.ledger.entries.numbers import pack
from app.privacy.filter import Filter

_ROUNDING: Final = 1e-12
"""Relative error of a sum of tranches in double precision, with room."""


def change_limit(
    context: LedgerContext,
    tx: WriteSession,
    dataset_id: str,
    epsilon: float,
    delta: float | None,
) -> None:
    """Set the dataset's limit to ``epsilon`` in total.

    For the dataset that opened the account this is the account's limit. For another dataset it is a cap, which keeps
    its delta. A cap is the owner's rule within the account; the guarantee is the account's limit. ``delta`` belongs to
    the part above the highest limit so far. Up to that limit, nothing is added, and it is not used.

    Raises:
        InvalidRequest: at ``/epsilon`` or ``/delta``.
        StateConflict: the limit is lower than the spent and reserved total, or the account is frozen.
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
    used = admission.compose(locked.balance)
    if epsilon < used:
        raise StateConflict(
            f"The limit cannot be lower than the budget that is spent and reserved already. Use at least "
            f"{math.ceil(used * 1e4) / 1e4:.10g}."
        )
    locked.append(LIMIT_CHANGED, dataset_id, _body(locked, epsilon, total.delta, None))


def _raise(locked: LockedAccount, dataset_id: str, epsilon: float, delta: float | None) -> None:
    balance = locked.balance
    if delta is not None:
        check_delta(delta, 1, "/delta")
    if epsilon <= balance.guaranteed_epsilon * (1 + _ROUNDING):
        locked.append(LIMIT_CHANGED, dataset_id, _body(locked, epsilon, balance.total.delta, None))
        return
    if delta is None:
        raise InvalidRequest.at("/delta", "A limit above the highest so far needs a delta for the epsilon it adds.")
    total_delta = balance.total.delta + delta
    check_delta(total_delta, max(share.slots for share in balance.datasets.values()), "/delta")
    before = balance.guaranteed_epsilon
    tranche = make_design_pot(epsilon - before, delta, locked.context.max_epsilon, "/epsilon", before)
    locked.append(LIMIT_CHANGED, dataset_id, _body(locked, epsilon, total_delta, tranche))


def _body(locked: LockedAccount, epsilon: float, delta: float, tranche: Pot | None) -> dict[str, Any]:
    return {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": pack(compute_total_bounds(epsilon, delta, locked.balance.total.orders)),
        "tranche": tranche.to_json() if tranche else None,
        "distance": pack(locked.balance.distance.bounds),
    }


def _change_cap(locked: LockedAccount, dataset_id: str, cap: Pot, epsilon: float, delta: float | None) -> None:
    _check_same_delta(delta, cap.delta)
    if epsilon == cap.epsilon:
        return
    if cap.untouched:
        after = make_design_pot(epsilon, cap.delta, math.inf, "/epsilon")
    else:
        after = filter_pot(Filter(epsilon, cap.delta, cap.orders, cap.weights))
        if not cap.rebound(epsilon, cap.delta, after.meter.bounds).meter.holds:
            raise StateConflict("The limit cannot be lower than the budget that this dataset's jobs use already.")
    locked.append(LIMIT_CHANGED, dataset_id, {"cap": after.to_json()})


def _check_same_delta(delta: float | None, current: float) -> None:
    if delta is not None and delta != current:
        raise InvalidRequest.at("/delta", "Only a higher limit takes a delta; leave it out.")
