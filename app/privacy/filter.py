"""The privacy filter: admits adaptively chosen events while a fixed weighted set of Renyi orders holds.

Order ``a`` with weight ``w`` (fixed beforehand, ``sum w <= 1``) converts at ``w * delta``: its bound is
``B = eps - log(1 - 1/a) + log(w delta a) / (a - 1)``, and an event is admitted iff *some* order stays within its
bound. One order is a valid filter (Feldman & Zrnic 2021); several are valid by the union bound over the weights
only. The minimum over a free grid of orders is not a filter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from app.privacy.accounting import INFINITE, UNIT_BITS, composable

CANDIDATES: tuple[float, ...] = (
    *(2.0, 3.0, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.25, 5.5, 5.75, 6.0, 6.5, 7.0, 7.5, 8.0, 9.0),
    *map(float, range(10, 33)),
    *map(float, range(34, 65, 2)),
    *(72.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 256.0, 320.0, 384.0, 512.0, 640.0, 768.0, 1024.0),
    *(1280.0, 1536.0, 2048.0, 2560.0, 3072.0, 4096.0, 6144.0, 8192.0),
)
"""Orders that a filter may be built on; chosen from the declared limit alone."""

WEIGHTS = {1.0: 0.6, 0.7: 0.36, 0.5: 0.02, 2.0: 0.019}
"""Weights of the orders at these multiples of the main one. The second pays for large jobs on small subsamples, whose
best order lies below that of a full batch; the last two for mixed plans."""

_SELECTING = 0.9
"""The main order is the best one at this share of delta."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for the total ``(epsilon, delta)`` with its orders and weights, fixed for ever when it opens."""

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(self.epsilon, self.delta)
        if not self.orders or not all(1 < order < math.inf for order in self.orders):
            raise ValueError("the orders of a filter are finite and above one")
        if len(self.orders) != len(self.weights) or not all(0 < weight <= 1 for weight in self.weights):
            raise ValueError("a filter has one positive weight for each order")
        if sum(map(Fraction, self.weights)) > 1:
            raise ValueError("the weights of a filter sum to at most one")

    @property
    def main(self) -> int:
        """Index of the order with the largest weight."""
        return max(range(len(self.weights)), key=self.weights.__getitem__)

    def bounds(self, epsilon: float | None = None) -> tuple[int, ...]:
        """Each order's bound in units of 2**-40 nats, rounded down; ``epsilon`` may be a lowered limit."""
        limit = self.epsilon if epsilon is None else min(epsilon, self.epsilon)
        return tuple(_bound(limit, self.delta, order, w) for order, w in zip(self.orders, self.weights, strict=True))

    def admits(self, amounts: Sequence[int], epsilon: float | None = None) -> bool:
        """Whether composed ``amounts`` (one per filter order) stay within the bound of some order.

        Raises:
            ValueError: for a vector of another length, or a limit that is no number.
        """
        pairs = list(zip(amounts, self.bounds(epsilon), strict=True))
        return any(amount <= bound and amount < INFINITE for amount, bound in pairs)


def design(epsilon: float, delta: float) -> Filter:
    """The default filter: most weight on ``argmax B/a``, the rest on a few orders around it (:data:`WEIGHTS`).

    An order whose bound is not positive could never admit anything, so it gets no weight.

    Raises:
        ValueError: if no order can admit anything at this ``epsilon`` and ``delta``, or they are no such numbers.
    """
    _check(epsilon, delta)
    main = max(CANDIDATES, key=lambda order: _bound(epsilon, delta, order, _SELECTING) / order)
    if _bound(epsilon, delta, main, WEIGHTS[1.0]) <= 0:
        raise ValueError("epsilon is too small for this delta")
    weights = {main: WEIGHTS[1.0]}
    for factor, weight in WEIGHTS.items():
        order = _nearest(main * factor)
        if order not in weights and _bound(epsilon, delta, order, weight) > 0:
            weights[order] = weight
    return Filter(epsilon, delta, tuple(weights), tuple(weights.values()))


def _nearest(wanted: float) -> float:
    return min(CANDIDATES, key=lambda order: abs(math.log(order / wanted)))


def _check(epsilon: float, delta: float) -> None:
    if not (math.isfinite(epsilon) and 0 < delta < 1):
        raise ValueError("a filter needs a finite epsilon and a delta in (0, 1)")


def _bound(epsilon: float, delta: float, order: float, weight: float) -> int:
    log_mass = math.log(weight) + math.log(composable(delta)) + math.log(order)
    nats = epsilon - math.log1p(-1.0 / order) + log_mass / (order - 1.0)
    return math.floor(math.ldexp(nats - abs(nats) * 1e-14, UNIT_BITS)) - 1
