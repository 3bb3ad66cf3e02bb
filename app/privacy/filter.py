"""The privacy filter: admits adaptively chosen events within a fixed set of Rényi orders.

Each order ``a`` has a weight ``w``, fixed beforehand, with ``sum w <= 1``. It converts at ``w * delta``, so its bound
is ``B = eps - log(1 - 1/a) + log(w delta a) / (a - 1)``. An event is admitted if *some* order stays within its bound.
One order is a valid filter (Feldman & Zrnic 2021). Several orders are valid by the union bound over the weights. The
minimum over a free grid of orders is not a valid filter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.privacy.accounting import INFINITE, UNIT_BITS
from app.privacy.ladder import bound_nats, choose_weights


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for the total ``(epsilon, delta)``, with its orders and their weights.

    All are fixed when the account or tranche opens.

    Raises:
        ValueError: for numbers out of range, or weights that sum to more than one.
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
        """Index of the order with the largest weight."""
        return max(range(len(self.weights)), key=self.weights.__getitem__)

    def bounds(self, epsilon: float | None = None) -> tuple[int, ...]:
        """Compute each order's bound in units of 2**-40 nats, rounded down.

        ``epsilon`` may be a lowered limit; a higher one than the filter's has no effect.
        """
        limit = self.epsilon if epsilon is None else min(epsilon, self.epsilon)
        return tuple(
            _compute_bound(limit, self.delta, order, w) for order, w in zip(self.orders, self.weights, strict=True)
        )

    def admits(self, amounts: Sequence[int], epsilon: float | None = None) -> bool:
        """Whether composed ``amounts`` (one per filter order) stay within the bound of some order.

        Raises:
            ValueError: for a vector of another length, or a limit that is NaN.
        """
        pairs = list(zip(amounts, self.bounds(epsilon), strict=True))
        return any(amount <= bound and amount < INFINITE for amount, bound in pairs)


def design(epsilon: float, delta: float) -> Filter:
    """Make the default filter of :mod:`app.privacy.ladder`.

    A filter of a higher ``epsilon`` admits all events that one of a lower ``epsilon`` admits.

    Raises:
        ValueError: if no order can admit anything at this ``epsilon`` and ``delta``, or one is out of range.
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
    """Compute an order's bound in units, rounded down by at least one unit.

    That leaves more than a relative 1e-12 of delta unused, far more than ``SET_ASIDE``.
    """
    spendable = bound_nats(epsilon, delta, order, math.log(weight))
    return math.floor(math.ldexp(spendable - abs(spendable) * 1e-14, UNIT_BITS)) - 1
