"""Orders and weights of the default filter, which grow with the limit.

A higher limit never leaves less room.

At each limit one order of a ladder, the main one, has most weight, and the two below it have less. As the limit grows,
the main order hands its weight over to the next lower one. It does so slowly enough that its own bound keeps growing:
the bound of order ``a`` is ``eps - log(1 - 1/a) + log(w delta a) / (a - 1)``, so ``w`` may fall by at most ``exp(-(a -
1))`` for each unit of epsilon. Bounds of all orders of the ladder thus grow with the limit. An order is left out only
if a lower one has a larger bound. Renyi divergences never fall as the order grows, so whatever the higher order would
admit, the lower one admits as well. Together: what a filter admits, the filter of every higher limit at the same delta
admits, for all events.
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
"""Of the main order and of the next lower ones. The second pays for large jobs on small subsamples, whose best order
lies below that of a full batch; the third for mixed plans. They leave room for orders that still hand over."""

_RATIO = 1.3
"""Least ratio of neighbouring orders of a ladder."""

_DECAY = 0.9
"""How fast a weight falls, as a share of what would keep its bound level."""

_LEFT = 4.0
"""An order keeps at most ``exp(-_LEFT)`` of its weight until the next one begins to hand over."""


def bound_nats(epsilon: float, delta: float, order: float, log_weight: float) -> float:
    """What ``order`` may spend if it converts at its weight's share of ``delta``."""
    mass = log_weight + math.log(delta) + math.log(order)
    return epsilon - math.log1p(-1.0 / order) + mass / (order - 1.0)


def choose_weights(epsilon: float, delta: float) -> dict[float, float]:
    """Choose the default filter's orders, with a weight each; the weights sum to less than one.

    Each order has a positive bound, and none is dominated.
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
    """Falling ``orders``, and the limits at which each begins to hand over to the next; the last one never does."""

    orders: tuple[float, ...]
    handovers: tuple[float, ...]

    def log_weights(self, epsilon: float) -> Iterator[tuple[float, float]]:
        """The logarithm of each order's weight, where it has one."""
        passed = bisect_right(self.handovers, epsilon)
        kept = 0.0
        for order, start in zip(self.orders[:passed], self.handovers, strict=False):
            fall = -_DECAY * (order - 1.0) * (epsilon - start)
            kept = math.exp(fall)
            yield order, math.log(WEIGHTS[0]) + fall
        for order, (before, after) in zip(self.orders[passed:], pairwise((*WEIGHTS, 0.0)), strict=False):
            weight = after + (before - after) * (1.0 - kept)
            if weight > 0:
                yield order, math.log(weight)


@lru_cache(maxsize=256)
def _build_ladder(delta: float) -> _Ladder:
    """From the lowest order up: each as low as :data:`_RATIO` and :data:`_LEFT` allow at this ``delta``."""
    orders, handovers = [CANDIDATES[0]], [math.inf]
    for order in CANDIDATES:
        start = _find_crossing(delta, order, orders[-1]) if order >= _RATIO * orders[-1] else math.inf
        if _DECAY * (order - 1.0) * (handovers[-1] - start) >= _LEFT:
            orders.append(order)
            handovers.append(start)
    return _Ladder(tuple(reversed(orders)), tuple(reversed(handovers[1:])))


def _find_crossing(delta: float, high: float, low: float) -> float:
    """The limit at which a Gaussian fits as often at the order ``high`` as at ``low``, both with the main weight."""
    of_high, of_low = (bound_nats(0.0, delta, order, math.log(WEIGHTS[0])) for order in (high, low))
    return (of_high * low - of_low * high) / (high - low)
