"""The accountant: prices events by their Rényi divergences, as integers that are rounded up.

The divergences come from dp-accounting (the moments accountant). Prices hold for the zero-out relation only, which
dp-accounting calls REPLACE_SPECIAL. The conversion to (epsilon, delta) is Canonne, Kamath & Steinke 2020, Prop. 12:
``eps = R + log(1 - 1/a) - log(delta a) / (a - 1)``.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, PrivacyEvent, UnknownEvent, flatten

ACCOUNTANT = "rdp"
UNIT_BITS = 40
_UNIT, _ROUNDING = 2.0**-UNIT_BITS, 1e-15
INFINITE = 2**62
"""Amounts saturate here. An order with this amount has no finite price, so it admits nothing."""

HIGHEST_SAMPLED_ORDER = 1024
"""Higher orders are priced for full-batch events only, because a sampled event takes time linear in the order."""

ORDERS: tuple[float, ...] = (
    *(2.0, 3.0, 3.2, 3.4, 3.6, 3.8, 4.0, 4.2, 4.4, 4.6, 4.8, 5.0, 5.2, 5.4, 5.6, 5.8),
    *(6.0, 6.2, 6.4, 6.6, 6.8, 7.0, 7.5, 8.0, 8.5, 9.0, 9.5, 10.0, 10.5),
    *map(float, range(11, 64)),
    *(128.0, 256.0, 512.0, 1024.0),
)
"""The orders that every stated epsilon minimises over. They are a subset of dp-accounting's default orders, so no
stated cost is below the library's for the same events. Fractional orders below 3 are left out, because the library's
series converges too slowly there: at some rates it gives up and warns."""

MOST_NOISE = 1e6
"""A larger noise multiplier is priced as this one. The price is then never too low, and the library's rounding errors
stay small."""

_LEAST_NOISE = 1e-3
"""An event with a smaller noise multiplier has an infinite price."""
_LEAST_RATE = 1e-12
"""A smaller sampling rate is priced as this one, which never costs less."""
_RELATIVE_PARTS, _ABSOLUTE_PARTS = 10**12, 10**14
"""Parts that are added to a divergence for the library's rounding errors.

The library computes the logarithm of a sum, and loses digits by cancellation if it is small. Measured against exact
arithmetic, a divergence is too small by at most 4e-16 nats, or by a relative 3e-13. The charge adds more than that: one
part in ``_RELATIVE_PARTS`` of the divergence, and ``1 / _ABSOLUTE_PARTS`` nats."""

SURCHARGE = 1.0 / _ABSOLUTE_PARTS
"""Nats that every event is charged beyond its price. They cover the library's error of 4e-16 nats and the excess of
discrete noise (:func:`app.privacy.discretisation.bound_excess_nats`)."""


def compose_renyi(events: Sequence[PrivacyEvent], orders: Sequence[float] = ORDERS) -> tuple[int, ...]:
    """Compose the Rényi divergences of ``events``, one amount per order.

    Returns:
        Amounts in units of 2**-40 nats, rounded up, saturating at :data:`INFINITE`; shape of ``orders``.

    Raises:
        UnknownEvent: for an event without a price.
    """
    totals = [0] * len(orders)
    for event, count in flatten(events):
        divergences = _divergences(*_rate_and_noise(event), tuple(orders))
        totals = [add(total, _compute_charge(value, count)) for total, value in zip(totals, divergences, strict=True)]
    return tuple(totals)


def add(left: int, right: int) -> int:
    """Add two amounts; the sum saturates at :data:`INFINITE`."""
    return min(left + right, INFINITE)


def compute_epsilon(amounts: Sequence[int], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """Convert composed ``amounts`` to the least epsilon over ``orders`` at ``delta``.

    Returns:
        Epsilon, rounded up; ``inf`` if every amount is infinite. An empty composition costs exactly zero.

    Raises:
        ValueError: for a ``delta`` outside (0, 1), or if ``amounts`` and ``orders`` differ in length.
    """
    if not 0 < delta < 1:
        raise ValueError("delta must be greater than 0 and less than 1")
    if len(amounts) != len(orders):
        raise ValueError("there must be one amount for each order")
    if not any(amounts):
        return 0.0
    terms = zip(amounts, _conversions(delta, tuple(orders)), strict=True)
    converted = [
        (nats := amount * _UNIT) + added - penalty + (nats + abs(penalty) + 1.0) * _ROUNDING
        for amount, (added, penalty) in terms
        if amount < INFINITE
    ]
    return max(0.0, math.nextafter(min(converted, default=math.inf), math.inf))


def compute_cost(events: Sequence[PrivacyEvent], delta: float, orders: Sequence[float] = ORDERS) -> float:
    """Compute the epsilon of ``events`` alone at ``delta``, composed with no other events."""
    return compute_epsilon(compose_renyi(events, orders), delta, orders)


@lru_cache(maxsize=256)
def _conversions(delta: float, orders: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """Compute the two terms of the conversion for each order: ``log(1 - 1/a)`` and ``log(delta a) / (a - 1)``."""
    return tuple((math.log1p(-1.0 / order), (math.log(delta) + math.log(order)) / (order - 1.0)) for order in orders)


def _compute_charge(divergence: float, count: int) -> int:
    """Compute the amount of ``count`` events of this ``divergence`` in nats, rounded up.

    The arithmetic is exact and rational, and rounds only once, so many small divergences are not lost.
    """
    if not math.isfinite(divergence):
        return INFINITE
    numerator, denominator = divergence.as_integer_ratio()
    each = numerator * (_RELATIVE_PARTS + 1) * (_ABSOLUTE_PARTS // _RELATIVE_PARTS) + denominator
    units = -(-(each * count << UNIT_BITS) // (denominator * _ABSOLUTE_PARTS))
    return min(units, INFINITE)


@lru_cache(maxsize=4096)
def _divergences(rate: float, noise: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    """Compute one event's divergences; orders that dp-accounting cannot or should not price are infinite."""
    priced = [order for order in orders if rate == 1 or order <= HIGHEST_SAMPLED_ORDER]
    if not priced or noise < _LEAST_NOISE:
        return (math.inf,) * len(orders)
    values = dict(zip(priced, _price_by_library(rate, noise, priced), strict=True))
    if not all(value >= -1 / _ABSOLUTE_PARTS for value in values.values()):
        raise UnknownEvent("the accountant has no price for this event")
    return tuple(max(0.0, values.get(order, math.inf)) for order in orders)


def _rate_and_noise(event: AtomicEvent) -> tuple[float, float]:
    """Return the rate and noise at which ``event`` is priced.

    The rate is never lower and the noise never larger than the event's, so the price is never below its cost.
    """
    if isinstance(event, GaussianEvent):
        return 1.0, min(event.noise_multiplier, MOST_NOISE)
    if isinstance(event, PoissonSampledEvent):
        return max(event.sampling_rate, _LEAST_RATE), min(event.event.noise_multiplier, MOST_NOISE)
    raise UnknownEvent("this event has no price")


def _price_by_library(rate: float, noise: float, orders: Sequence[float]) -> list[float]:
    import dp_accounting  # noqa: PLC0415  (takes seconds and 50 MiB; most processes price nothing)

    gaussian = dp_accounting.GaussianDpEvent(float(noise))
    event = gaussian if rate == 1 else dp_accounting.PoissonSampledDpEvent(float(rate), gaussian)
    accountant = dp_accounting.rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    accountant.compose(event)
    return [float(value) for value in accountant.rdp]
