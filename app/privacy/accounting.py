"""What events cost: Renyi divergences from dp-accounting (the moments accountant), held in integers, rounded up.

Prices hold for the zero-out relation only, which dp-accounting calls REPLACE_SPECIAL. The conversion to (epsilon,
delta) is Canonne, Kamath & Steinke 2020, Prop. 12: ``eps = R + log(1 - 1/a) - log(delta a) / (a - 1)``.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import dp_accounting
from dp_accounting import rdp

from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, PrivacyEvent, UnknownEvent, flatten

ACCOUNTANT = "rdp"
UNIT_BITS = 40
INFINITE = 2**62
"""Amounts saturate here: at this order nothing is known, so nothing is admitted."""

DISCRETISATION_SHARE = 0.01
"""The part of delta set aside for discretisation; conversions use the rest."""

HIGHEST_SAMPLED_ORDER = 1024
"""Orders above are priced for full-batch events only: a sampled one takes the library time linear in the order."""

ORDERS: tuple[float, ...] = (
    *(2.0, 2.5, 3.0, 3.2, 3.4, 3.6, 3.8, 4.0, 4.2, 4.4, 4.6, 4.8, 5.0, 5.2, 5.4, 5.6, 5.8),
    *(6.0, 6.2, 6.4, 6.6, 6.8, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0, 10.5),
    *map(float, range(11, 64)),
    *(128.0, 256.0, 512.0, 1024.0),
)
"""The one long list of orders that every stated epsilon minimises over: a part of dp-accounting's own, so that
no stated cost is ever below the library's for the same events."""


def renyi(events: Sequence[PrivacyEvent], orders: Sequence[float] = ORDERS) -> tuple[int, ...]:
    """The composed Renyi divergence of ``events``, one amount per order.

    Returns:
        Amounts in units of 2**-40 nats, rounded up, saturating at :data:`INFINITE`; shape of ``orders``.

    Raises:
        UnknownEvent: for an event without a price.
    """
    totals = [0] * len(orders)
    for event, count in flatten(events):
        divergences = _divergences(event, tuple(orders))
        totals = [add(total, _charge(value, count)) for total, value in zip(totals, divergences, strict=True)]
    return tuple(totals)


def add(left: int, right: int) -> int:
    """The sum of two amounts, saturating at :data:`INFINITE`."""
    return min(left + right, INFINITE)


def epsilon(amounts: Sequence[int], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """The least epsilon over ``orders`` at ``delta``, after the discretisation share is set aside; ``inf`` if none.

    Rounded up. An empty composition costs exactly zero.
    """
    if not any(amounts):
        return 0.0
    usable = (pair for pair in zip(amounts, orders, strict=True) if pair[0] < INFINITE)
    best = min((_convert(amount, order, composable(delta)) for amount, order in usable), default=math.inf)
    return max(0.0, best)


def cost(events: Sequence[PrivacyEvent], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """The epsilon of ``events`` alone at ``delta``, as if nothing else were ever asked."""
    return epsilon(renyi(events, orders), delta, orders)


def composable(delta: float) -> float:
    """The part of ``delta`` that composition may use; the rest pays for discretisation."""
    return delta * (1.0 - DISCRETISATION_SHARE)


def _convert(amount: int, order: float, delta: float) -> float:
    nats = math.ldexp(amount, -UNIT_BITS)
    value = nats + math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)
    return math.nextafter(value + abs(value) * 1e-14, math.inf)


def _charge(divergence: float, count: int) -> int:
    """``divergence * count`` in units, rounded up; exact rational arithmetic, so that many small charges add up."""
    if not math.isfinite(divergence):
        return INFINITE
    units: int = math.ceil(Fraction(divergence) * count * 2**UNIT_BITS)
    return min(units + 1, INFINITE)


@lru_cache(maxsize=4096)
def _divergences(event: AtomicEvent, orders: tuple[float, ...]) -> tuple[float, ...]:
    """dp-accounting's divergences of one event; orders that it cannot or should not price are infinite."""
    priced = [order for order in orders if _full_batch(event) or order <= HIGHEST_SAMPLED_ORDER]
    if not priced:
        return (math.inf,) * len(orders)
    accountant = rdp.RdpAccountant(priced, dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(_library_event(event))
    values = dict(zip(priced, map(float, accountant.rdp), strict=True))
    if any(math.isnan(value) or value < 0 for value in values.values()):
        raise UnknownEvent("the accountant has no price for this event")
    return tuple(values.get(order, math.inf) for order in orders)


def _full_batch(event: AtomicEvent) -> bool:
    return isinstance(event, GaussianEvent) or event.sampling_rate == 1


def _library_event(event: AtomicEvent) -> dp_accounting.DpEvent:
    if isinstance(event, GaussianEvent):
        return dp_accounting.GaussianDpEvent(event.noise_multiplier)
    if isinstance(event, PoissonSampledEvent):
        return dp_accounting.PoissonSampledDpEvent(event.sampling_rate, _library_event(event.event))
    raise UnknownEvent("this event has no price")
