"""Orders and weights of the default filter; a higher limit never admits less.

At each limit one order of a ladder, the main one, has the largest weight, and the two below it have less. As the limit
grows, the main order hands its weight over to the next lower one. It does so slowly enough that its bound keeps
growing. The bound of order ``a`` is ``eps - log(1 - 1/a) + log(w delta a) / (a - 1)``, so ``w`` may fall by at most
``exp(-(a - 1))`` for each unit of epsilon. The bounds of all orders of the ladder therefore grow with the limit.

An order is left out only if a lower one has a larger bound. Rényi divergences never fall as the order grows, so the
lower order admits all that the higher one would admit. Together: events that a filter admits are admitted by the
filter of every higher limit at the same delta.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

CANDIDATES: tuple[float, ...] = (
    *(2.0, 3.0, 3.25, 3.5, 3.75, 4.0, 4.25, 4.5, 4.75, 5.0, 5.25, 5.5, 5.75, 6.0, 6.5, 7.0, 7.5, 8.0, 9.0),
    *map(float, range(10, 33)),
    *map(float, range(34, 65, 2)),
    *(72.0, 80.0, 96.0, 112.0, 128.0, 160.0, 192.0, 256.0, 320.0, 384.0, 512.0, 640.0, 768.0, 1024.0),
    *(1280.0, 1536.0, 2048.0, 2560.0, 3072.0, 4096.0, 6144.0, 8192.0),
)
"""Orders that a filter may be built on."""

WEIGHTS = (0.6, 0.32, 0.06)
"""Weights of the main order and of the next two lower ones. The second serves large jobs on small subsamples, whose
best order is lower than that of a full batch; the third serves mixed plans. They sum to less than one, which leaves
weight for orders that are still handing over."""

_RATIO = 1.3
"""Least ratio of neighbouring orders of a ladder."""

_DECAY = 0.9
"""Rate at which a weight falls, as a share of the rate at which its bound would stay constant."""

_LEFT = 4.0
"""An order has at most ``exp(-_LEFT)`` of its weight left when the next one begins to hand over."""


def bound_nats(epsilon: float, delta: float, order: float, log_weight: float) -> float:
    """Compute the nats that ``order`` may spend at its weight's share of ``delta``."""
    mass = log_weight + math.log(delta) + math.log(order)
    return epsilon - math.log1p(-1.0 / order) + mass / (order - 1.0)


def choose_weights(epsilon: float, delta: float) -> dict[float, float]:
    """Choose the default filter's orders and their weights, which sum to less than one.

    Each order has a positive bound, and no lower order has a larger one.
    """
    logs = dict(_build_ladder(delta).log_weights(epsilon))
    bounds = {order: bound_nats(epsilon, delta, order, log_weight) for order, log_weight in logs.items()}
    chosen: dict[float, float] = {}
    best = 0.0
    for order in sorted(bounds):
        if bounds[order] > best:
            best, chosen[order] = bounds[order], math.exp(logs[order])
    return chosen


@dataclass(frozen=True, slots=True)
class _Ladder:
    """Orders, highest first, and the limits at which they hand over.

    ``handovers[i]`` is the limit at which ``orders[i]`` begins to hand its weight over; the last order never does.
    """

    orders: tuple[float, ...]
    handovers: tuple[float, ...]

    def log_weights(self, epsilon: float) -> Iterator[tuple[float, float]]:
        """Yield the orders with a weight at the limit ``epsilon``, and its logarithm."""
        passed = bisect_right(self.handovers, epsilon)
        share = 0.0
        for order, start in zip(self.orders[:passed], self.handovers, strict=False):
            fall = -_DECAY * (order - 1.0) * (epsilon - start)
            share = math.exp(fall)
            yield order, math.log(WEIGHTS[0]) + fall
        for order, (before, after) in zip(self.orders[passed:], pairwise((*WEIGHTS, 0.0)), strict=False):
            weight = after + (before - after) * (1.0 - share)
            if weight > 0:
                yield order, math.log(weight)


@lru_cache(maxsize=256)
def _build_ladder(delta: float) -> _Ladder:
    """Build the ladder from the lowest order up.

    Each order is as low as :data:`_RATIO` and :data:`_LEFT` allow at this ``delta``.
    """
    orders, handovers = [CANDIDATES[0]], [math.inf]
    for order in CANDIDATES:
        start = _find_crossing(delta, order, orders[-1]) if order >= _RATIO * orders[-1] else math.inf
        if _DECAY * (order - 1.0) * (handovers[-1] - start) >= _LEFT:
            orders.append(order)
            handovers.append(start)
    return _Ladder(tuple(reversed(orders)), tuple(reversed(handovers[1:])))


def _find_crossing(delta: float, high: float, low: float) -> float:
    """Find the limit at which two orders admit the same number of Gaussians.

    Both orders have the main weight.
    """
    of_high, of_low = (bound_nats(0.0, delta, order, math.log(WEIGHTS[0])) for order in (high, low))
    return (of_high * low - of_low * high) / (high - low)
