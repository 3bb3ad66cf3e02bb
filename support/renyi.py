"""Prices of sampled Gaussian mechanisms from their definition, in many digits.

The accounting library is not used. Orders that are integers use the binomial expansion in interval arithmetic, which
encloses the true divergence. Other orders use quadrature of the definition with 25 digits. Source: Mironov, Talwar &
Zhang, *Renyi differential privacy of the sampled Gaussian mechanism*, 2019, Section 3.3.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import mpmath

_DIGITS: Final = 40
_QUADRATURE_DIGITS: Final = 25
_REACH: Final = 30
"""Standard deviations of the noise beyond both means in which densities are integrated."""


@lru_cache(maxsize=100_000)
def enclose_divergence(rate: float, noise: float, order: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Enclose the Renyi divergence in nats at an integer ``order``, by interval arithmetic.

    Returns:
        A lower and an upper bound. ``rate`` and ``noise`` are taken as the exact numbers that floats are.
    """
    interval = mpmath.iv
    interval.dps = _DIGITS
    sampled, variance = interval.mpf(rate), interval.mpf(noise) ** 2
    if rate == 1:
        found = interval.mpf(order) / (2 * variance)
    else:
        growth, odds = interval.exp(1 / variance), sampled / (1 - sampled)
        term, boost, total = (1 - sampled) ** order, interval.mpf(1), interval.mpf(0)
        for index in range(order + 1):
            total += term * boost
            term = term * (order - index) / (index + 1) * odds
            boost *= growth**index
        found = interval.log(total) / (order - 1)
    return mpmath.mpf(found.a), mpmath.mpf(found.b)


@lru_cache(maxsize=100_000)
def integrate_divergence(rate: float, noise: float, order: float) -> mpmath.mpf:
    """Integrate the Renyi divergence of the mixture from the normal law, in nats."""
    with mpmath.workdps(_QUADRATURE_DIGITS):
        sampled, sigma, alpha = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.mpf(order)

        def weigh(x: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - sampled + sampled * mpmath.exp((2 * x - 1) / (2 * sigma**2))
            return mpmath.npdf(x, 0, sigma) * ratio**alpha

        edges = [-_REACH * sigma, 0, 1, alpha / 2, alpha, alpha + _REACH * sigma]
        return mpmath.log(mpmath.quad(weigh, sorted(edges))) / (alpha - 1)


def convert(divergences: Sequence[mpmath.mpf], orders: Sequence[float], delta: float) -> float:
    """Convert divergences to the least epsilon over ``orders``.

    Source: Canonne, Kamath & Steinke 2020, Proposition 12.
    """
    with mpmath.workdps(_DIGITS):
        found = [
            nats + mpmath.log1p(-1 / mpmath.mpf(order)) - (mpmath.log(delta) + mpmath.log(order)) / (order - 1)
            for nats, order in zip(divergences, orders, strict=True)
        ]
        return float(max(mpmath.mpf(0), *[min(found)]))
