"""The power of an attacker, from a privacy cost: odds, and the rate of true positives of any test.

A test decides whether a unit is in the data. Its false positives are bounded by ``a`` and its true positives by a
trade-off function of ``a``. Three of them, from the least to the most information:

- (epsilon, delta): ``min(e^eps a + delta, 1 - e^-eps (1 - delta - a))`` (Kairouz, Oh & Viswanath 2015);
- Rényi divergences ``R_o``: ``min_o (a e^R_o)^((o - 1)/o)`` (probability preservation, Mironov 2017, Prop. 10);
- a Gaussian mechanism with shift ``mu``: ``Phi(Phi^-1(a) + mu)``, which is exact (Dong, Roth & Su 2022).
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from app.privacy.accounting import INFINITE, UNIT_BITS

_NORMAL: Final = NormalDist()
_TOLERANCE: Final = 1e-4
"""Largest relative spread of ``R_o / o`` that rounding of amounts explains, for costs that matter."""


def compute_odds(epsilon: float) -> float:
    """Compute the largest posterior odds from even prior odds: ``e^epsilon``; infinite if it overflows."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def bound_true_positives(false_positives: float, epsilon: float, delta: float) -> float:
    """Bound the rate of true positives of any test on an (epsilon, delta) mechanism.

    Raises:
        ValueError: an argument is outside of its range.
    """
    _check(false_positives)
    if not (epsilon >= 0 and 0 <= delta < 1):
        raise ValueError("epsilon must be at least 0, and delta at least 0 and less than 1")
    odds = compute_odds(epsilon)
    return max(0.0, min(1.0, odds * false_positives + delta, 1 - (1 - delta - false_positives) / odds))


def bound_true_positives_by_renyi(false_positives: float, amounts: Sequence[int], orders: Sequence[float]) -> float:
    """Bound the rate of true positives by composed Rényi amounts (units of 2**-40 nats)."""
    _check(false_positives)
    rates = [
        math.exp(min(0.0, (order - 1) / order * (amount * 2.0**-UNIT_BITS + math.log(false_positives))))
        for amount, order in zip(amounts, orders, strict=True)
        if amount < INFINITE
    ]
    return max(false_positives, min(rates, default=1.0))


def compute_gaussian_true_positives(false_positives: float, shift: float) -> float:
    """Compute the power of the best test between ``N(0, 1)`` and ``N(shift, 1)``."""
    _check(false_positives)
    return _NORMAL.cdf(_NORMAL.inv_cdf(false_positives) + shift)


def find_gaussian_shift(amounts: Sequence[int], orders: Sequence[float]) -> float | None:
    """Find the shift ``mu`` of the Gaussian mechanism with these Rényi amounts; None if there is none.

    Full-batch Gaussian events compose to one Gaussian with ``R_o = o mu^2 / 2``. Sampled ones have another shape. The
    largest ratio is taken, so that rounding never makes the shift too small.
    """
    ratios = [amount / order for amount, order in zip(amounts, orders, strict=True) if amount < INFINITE]
    if len(ratios) < 2 or max(ratios) - min(ratios) > _TOLERANCE * max(ratios):
        return None
    return math.sqrt(2 * max(ratios) * 2.0**-UNIT_BITS)


def _check(false_positives: float) -> None:
    if not 0 < false_positives < 1:
        raise ValueError("the rate of false positives must be greater than 0 and less than 1")
