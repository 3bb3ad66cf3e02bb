"""Calibration: finds the least noise multiplier whose plan costs at most a target epsilon."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import scipy  # loads its submodules on first use

from app.privacy.accounting import INFINITE, MOST_NOISE, ORDERS, UNIT_BITS, compose_renyi, compute_cost, compute_epsilon
from app.privacy.events import PrivacyEvent

Plan = Callable[[float], Sequence[PrivacyEvent]]
"""Maps a noise multiplier to the events of the plan; more noise never costs more."""

LEAST_NOISE = 0.05
_TOLERANCE = 1e-7
_STEP = 1.5
_COARSE = (2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 14.0, 18.0, 23.0, 29.0, 36.0, 45.0, 56.0)
"""Orders that are cheap to price; a first pass over them finds one near the best."""
_ENDS = (*_COARSE, 128.0, 256.0, 512.0, 1024.0)
"""Ends of the parts of the orders in which the best one is looked for."""


class Unreachable(ValueError):
    """No noise multiplier up to MOST_NOISE meets the target. ``least`` is the cost at MOST_NOISE, in epsilon."""

    def __init__(self, reason: str, least: float = math.inf) -> None:
        super().__init__(reason)
        self.least = least


def calibrate(plan: Plan, target: float, delta: float) -> float:
    """Find the least noise multiplier whose events cost at most ``target``.

    Each round solves for the noise that meets the target at one order, then moves to the best order near it at that
    noise. One order alone can only overstate the cost, so the noise of every round meets the target. The search ends
    when no order near the last one is better. Then no order is, because the cost has one minimum: times the order less
    one, it is a convex function of the order.

    Args:
        plan: the events of the plan for a noise multiplier; more noise must not cost more.
        target: epsilon, positive.
        delta: in (0, 1).

    Returns:
        The noise multiplier, between :data:`LEAST_NOISE` and ``MOST_NOISE``, with a relative error of 1e-6.

    Raises:
        Unreachable: if the target cannot be met, or is not a positive finite number.
        ValueError: for a ``delta`` outside (0, 1).
    """
    if not (math.isfinite(target) and target > 0):
        raise Unreachable("the target epsilon must be a positive finite number")
    least = compute_cost(plan(MOST_NOISE), delta)
    if least > target:
        raise Unreachable("no noise is large enough", least)
    search = _Search(plan, target, delta)
    noise, last = search.find_least_noise(search.find_best_order_for_gaussians(), MOST_NOISE), math.nan
    order = last
    for list_orders in (_list_coarse, _list_near):
        while (order := search.find_best_order(list_orders(order), noise)) != last:
            noise, last = search.find_least_noise(order, noise), order
    return noise


def _list_coarse(_order: float) -> tuple[float, ...]:
    return _COARSE


def _list_near(order: float) -> tuple[float, ...]:
    """List the orders from the next lower end to the next higher one."""
    low = max((each for each in _ENDS if each < order), default=0.0)
    high = min((each for each in _ENDS if each > order), default=math.inf)
    return tuple(each for each in ORDERS if low <= each <= high)


@dataclass(frozen=True, slots=True)
class _Search:
    plan: Plan
    target: float
    delta: float

    def find_best_order(self, orders: Sequence[float], noise: float) -> float:
        pairs = zip(compose_renyi(self.plan(noise), orders), orders, strict=True)
        return min(pairs, key=lambda pair: compute_epsilon(pair[:1], self.delta, pair[1:]))[1]

    def find_best_order_for_gaussians(self) -> float:
        return max(ORDERS, key=lambda order: self.compute_limit(order) / order)

    def compute_limit(self, order: float) -> float:
        """Compute the nats that ``order`` may spend; not positive if it cannot meet the target."""
        mass = math.log(self.delta) + math.log(order)
        return self.target - math.log1p(-1.0 / order) + mass / (order - 1.0)

    def find_least_noise(self, order: float, enough: float) -> float:
        """Find the least noise that meets the target at ``order``, and at most ``enough``."""
        limit = self.compute_limit(order)
        if limit <= 0:
            return enough

        def excess(log_noise: float) -> float:
            amount = compose_renyi(self.plan(math.exp(log_noise)), (order,))[0]
            return math.log(math.ldexp(amount, -UNIT_BITS) / limit) if amount < INFINITE else 100.0

        low, high = _bracket(excess, math.log(enough))
        if excess(high) > 0:
            return enough
        noise = math.exp(scipy.optimize.brentq(excess, low, high, xtol=_TOLERANCE, rtol=8.9e-16) if low < high else low)
        while noise < enough and compute_cost(self.plan(noise), self.delta, (order,)) > self.target:
            noise *= 1 + _TOLERANCE
        return min(noise, enough)


def _bracket(excess: Callable[[float], float], high: float) -> tuple[float, float]:
    """Bracket the root of ``excess`` by the logs of two noise multipliers.

    The first is too small, the second large enough or ``high``. Both are ``log(LEAST_NOISE)`` if that is enough.
    """
    least = math.log(LEAST_NOISE)
    point = min(0.0, high)
    while point < high and excess(point) > 0:
        point = min(point + _STEP, high)
    while point > least and excess(max(point - _STEP, least)) <= 0:
        point = max(point - _STEP, least)
    return max(point - _STEP, least), point
