"""Calibration: the least noise whose plan costs at most a target epsilon alone."""

import math
from collections.abc import Callable, Sequence

from scipy.optimize import brentq

from app.privacy.accounting import ORDERS, cost, epsilon, renyi
from app.privacy.events import PrivacyEvent

Plan = Callable[[float], Sequence[PrivacyEvent]]
"""Maps a noise multiplier to the events of the plan; more noise never costs more."""

LEAST_NOISE = 0.05
MOST_NOISE = 1e6
_TOLERANCE = 1e-7
_COARSE = (*ORDERS[::5], *ORDERS[-4:])
_WINDOW = 2.0


class Unreachable(ValueError):
    """No noise multiplier between LEAST_NOISE and MOST_NOISE reaches the target."""


def calibrate(plan: Plan, target: float, delta: float) -> float:
    """The least noise multiplier whose events cost at most ``target`` at ``delta``, to a relative 1e-6.

    The search runs on a coarse list of orders and then on those around the best one, which can only overstate the
    cost, so that the answer is right by construction and the full list is read once.

    Raises:
        Unreachable: if the target cannot be met.
    """
    noise = _search(plan, target, delta, _COARSE, 1e-2)
    best = _best_order(plan(noise), delta)
    noise = _search(plan, target, delta, _around(best), _TOLERANCE)
    while cost(plan(noise), delta) > target:
        noise *= 1 + 1e-6
    return noise


def _search(plan: Plan, target: float, delta: float, orders: Sequence[float], tolerance: float) -> float:
    def excess(log_noise: float) -> float:
        value = cost(plan(math.exp(log_noise)), delta, orders) - target
        return value if math.isfinite(value) else 1e12

    low, high = _bracket(excess)
    if low == high:
        return math.exp(low)
    root = float(brentq(excess, low, high, xtol=tolerance, rtol=8.9e-16))
    return math.exp(root if excess(root) <= 0 else min(root + 2 * tolerance, high))


def _bracket(excess: Callable[[float], float]) -> tuple[float, float]:
    """Logs of two noise multipliers, the first too small and the second large enough."""
    low, high = math.log(LEAST_NOISE), math.log(MOST_NOISE)
    point = 0.0
    if excess(point) > 0:
        while excess(low := point) > 0 and (point := point + 1.5) < high:
            if excess(point) <= 0:
                return low, point
        raise Unreachable("no noise is large enough")
    while (point := point - 1.5) > low:
        if excess(point) > 0:
            return point, point + 1.5
    return (low, low) if excess(low) <= 0 else (low, point + 1.5)


def _best_order(events: Sequence[PrivacyEvent], delta: float) -> float:
    amounts = renyi(events)
    return min(ORDERS, key=lambda order: epsilon((amounts[ORDERS.index(order)],), delta, (order,)))


def _around(order: float) -> tuple[float, ...]:
    return tuple(other for other in ORDERS if order / _WINDOW <= other <= order * _WINDOW)
