"""The privacy filter: decides whether further events fit into a budget ``(eps, delta)``.

Events may be chosen adaptively, that is, by earlier answers. The orders of a filter and their weights are fixed
beforehand. Each order ``a`` has a weight ``w`` and so the share ``w * delta`` of delta, with ``sum w <= 1``. The order
guarantees ``(eps, w * delta)`` while the composed Rényi divergence at ``a`` is at most its bound ``B = eps - log(1 -
1/a) + log(w delta a) / (a - 1)``. An event is admitted if, including it, *at least one* order stays within its bound.

With one order this is a valid filter (Feldman & Zrnic 2021). With several orders it is valid by a union bound, because
their shares of delta sum to at most delta. It would not be valid to let each order use the whole of delta and to take
the best one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.privacy.accounting import INFINITE, UNIT_BITS
from app.privacy.ladder import bound_nats, choose_weights


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for the budget ``(epsilon, delta)``, with weighted orders.

    All four attributes are fixed when the account or the tranche opens.

    Raises:
        ValueError: a number is out of range, or the weights sum to more than one.
    """

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(self.epsilon, self.delta)
        if not self.orders or not all(1 < order < math.inf for order in self.orders):
            raise ValueError("the orders of a filter must be finite and greater than one")
        if len(self.orders) != len(self.weights) or not all(0 < weight <= 1 for weight in self.weights):
            raise ValueError("a filter needs one positive weight for each order")
        if sum(map(Fraction, self.weights)) > 1:
            raise ValueError("the weights of a filter must sum to at most one")

    @property
    def main(self) -> int:
        """The index of the order with the largest weight."""
        return max(range(len(self.weights)), key=self.weights.__getitem__)

    def bounds(self, epsilon: float | None = None) -> tuple[int, ...]:
        """Compute each order's bound in units of 2**-40 nats, rounded down.

        With ``epsilon``, the bounds are for that limit if it is lower than the filter's own limit.
        """
        limit = self.epsilon if epsilon is None else min(epsilon, self.epsilon)
        return tuple(
            _compute_bound(limit, self.delta, order, w) for order, w in zip(self.orders, self.weights, strict=True)
        )

    def admits(self, amounts: Sequence[int], epsilon: float | None = None) -> bool:
        """Whether at least one order stays within its bound.

        Args:
            amounts: the composed divergence of all events at each order, in units of 2**-40 nats.
            epsilon: a limit as in :meth:`bounds`.

        Raises:
            ValueError: ``amounts`` has another length than the orders, or ``epsilon`` is NaN.
        """
        pairs = list(zip(amounts, self.bounds(epsilon), strict=True))
        return any(amount <= bound and amount < INFINITE for amount, bound in pairs)


def design(epsilon: float, delta: float) -> Filter:
    """Make the default filter, with the orders and weights of :mod:`app.privacy.ladder`.

    At the same ``delta``, a filter with a higher ``epsilon`` admits all events that a filter with a lower one admits.

    Raises:
        ValueError: no order has a positive bound at this ``epsilon`` and ``delta``, or one of them is out of range.
    """
    _check(epsilon, delta)
    chosen = choose_weights(epsilon, delta)
    weights = {order: weight for order, weight in chosen.items() if _compute_bound(epsilon, delta, order, weight) > 0}
    if not weights:
        raise ValueError("epsilon is too small for this delta")
    return Filter(epsilon, delta, tuple(weights), tuple(weights.values()))


def _check(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and 0 < delta < 1):
        raise ValueError("a filter needs a finite epsilon and a delta in (0, 1)")


def _compute_bound(epsilon: float, delta: float, order: float, weight: float) -> int:
    """Compute an order's bound in units of 2**-40 nats.

    It is rounded down by at least one unit. One unit leaves about ``(order - 1) * 2**-40`` of the order's share of
    delta unused. From order 2 on, this is a relative 9e-13 or more. Discrete noise needs only
    1e-300 (:data:`app.privacy.discretisation.SET_ASIDE`) of a delta that is at least 1e-200.
    """
    spendable = bound_nats(epsilon, delta, order, math.log(weight))
    return math.floor(math.ldexp(spendable - abs(spendable) * 1e-14, UNIT_BITS)) - 1
