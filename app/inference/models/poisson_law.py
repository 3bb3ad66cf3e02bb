"""The Poisson distribution in the row zone: every rate takes the same steps, so durations do not reveal it.

Below a rate of 8, moments are sums over 48 values. Above, the distribution function is the incomplete gamma function
``P(Y <= k) = Q(k + 1, rate)`` by its uniform asymptotic expansion. With ``a = k + 1`` and ``eta^2 / 2 = m - log(1 +
m)``, ``m = rate / a - 1``,

    ``Q = erfc(eta sqrt(a / 2)) / 2 + exp(-a eta^2 / 2) / sqrt(2 pi a) * (C_0(eta) + C_1(eta) / a + C_2(eta) / a^2)``.

Sources: Temme, *SIAM J. Math. Anal.* 10, 1979; NIST Digital Library of Mathematical Functions, 8.12.
"""

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.private_zone.rowwise import choose

_FEW: Final = 8.0
_TERMS: Final = 48
_NEAR: Final = 0.5
_ONE: Final = np.float64(1)
_TINY: Final = 1e-4
"""Smaller rates are replaced by this from the third event on. The error is negligible; no number is subnormal (W14)."""
_SERIES: Final[tuple[tuple[float, ...], ...]] = (
    (
        -1 / 3,
        1 / 12,
        -2 / 135,
        1.1574074074074074e-3,
        3.527336860670194e-4,
        -1.7875514403292181e-4,
        3.9192631785224378e-5,
        -2.1854485106799922e-6,
        -1.85406221071516e-6,
        8.296711340953086e-7,
        -1.7665952736826079e-7,
        6.7078535434014986e-9,
    ),
    (
        -1 / 540,
        -1 / 288,
        2.6455026455026455e-3,
        -9.9022633744855967e-4,
        2.0576131687242798e-4,
        -4.0187757201646091e-7,
        -1.8098550334489978e-5,
        7.6491609160811101e-6,
    ),
    (4.1335978835978836e-3, -2.6813271604938272e-3, 7.7160493827160494e-4, 2.0093878600823045e-6),
)
"""Coefficients of ``C_0``, ``C_1`` and ``C_2`` in powers of eta."""


_TAIL_DEGREE: Final = 24


@lru_cache(maxsize=1)
def _tail_coefficients() -> tuple[float, ...]:
    """Interpolate ``log(erfc(z) exp(z^2) / t)`` by Chebyshev polynomials.

    Their argument is ``2t - 1`` with ``t = 2 / (2 + z)`` and ``z >= 0``.
    """
    interpolate = np.polynomial.chebyshev.chebinterpolate
    coefficients = interpolate(lambda x: np.log(2 * scipy.special.erfcx(4 / (x + 1) - 2) / (x + 1)), _TAIL_DEGREE)
    return tuple(coefficients.tolist())


def compute_clipped_mean(rate: Array64, cut: Array64) -> Array64:
    """Compute ``E[clip(Y - rate, -cut, cut)]`` for ``Y ~ Poisson(rate)``.

    Elementwise for arrays of one shape, to about single precision.
    """
    by_sum = _sum_mean(np.minimum(rate, _FEW), cut)
    return choose(rate < _FEW, by_sum, _compute_mean_by_tails(np.maximum(rate, _FEW), cut))


def _sum_mean(rate: Array64, cut: Array64) -> Array64:
    """Compute the clipped mean of small rates by a sum over ``_TERMS`` values."""
    probability, total = np.exp(-rate), np.zeros_like(rate)
    normal = np.maximum(rate, _TINY)
    for value in range(_TERMS):
        total += probability * np.clip(value - rate, -cut, cut)
        probability *= (rate if value < 2 else normal) / (value + 1)
    return total


def _compute_mean_by_tails(rate: Array64, cut: Array64) -> Array64:
    """Compute ``E[min(Y, high)] - E[min(Y, low)] + low - rate``."""
    cut = np.minimum(cut, 12 * np.sqrt(rate) + 40)  # larger cuts have no effect in single precision
    low, high = np.maximum(rate - cut, 0), rate + cut
    below = np.maximum(rate - cut, -cut)  # a negative bound has no effect: the mean of min(Y, low) is low
    return _mean_of_minimum(rate, high) - choose(rate > cut, _mean_of_minimum(rate, low), below) + below - rate


def _mean_of_minimum(rate: Array64, bound: Array64) -> Array64:
    """Compute ``E[min(Y, bound)]``.

    It is ``rate P(Y <= k - 1) + bound P(Y > k)``, with ``k`` the floor of ``bound``.
    """
    distribution, mass = _compute_probabilities(rate, np.floor(bound))
    return rate * (distribution - mass) + bound * (1 - distribution)


def _compute_probabilities(rate: Array64, k: Array64) -> tuple[Array64, Array64]:
    """Compute ``P(Y <= k)`` and ``P(Y = k)``."""
    a = k + 1
    m = rate / a - 1
    half = np.maximum(m - np.log1p(m), 0)
    eta = np.copysign(np.sqrt(2 * half), m)
    bell = np.exp(-np.minimum(a * half, 600)) / np.sqrt(2 * math.pi * a)
    correction = (
        _compute_first_term(m, eta)
        + (_compute_second_term(m, eta) + _evaluate_polynomial(_SERIES[2], np.clip(eta, -1, 1)) / a) / a
    )
    distribution = _normal_distribution(-np.clip(eta * np.sqrt(a), -30, 30)) + bell * correction
    stirling = 1 + (1 / 12 + (1 / 288 - 139 / 51840 / a) / a) / a
    return distribution, bell * a / (rate * stirling)


def _normal_distribution(x: Array64) -> Array64:
    """Compute ``Phi(x)`` to about 1e-14, by the same steps for every value.

    SciPy's function branches on the value (W14). The tail is one Chebyshev series (Press et al., *Numerical Recipes*,
    3rd ed., section 6.2.2).
    """
    z = np.abs(x) * math.sqrt(0.5)
    t = 2 / (2 + z)
    place, last, before, tails = 4 * t - 2, np.zeros_like(t), np.zeros_like(t), _tail_coefficients()
    for coefficient in tails[:0:-1]:  # Clenshaw's recurrence
        before, last = last, place * last - before + coefficient
    tail = 0.5 * t * np.exp(tails[0] + 0.5 * place * last - before - z * z)
    upper = (x > 0).astype(np.float64)
    return np.asarray(upper + (1 - 2 * upper) * tail)


def _compute_first_term(m: Array64, eta: Array64) -> Array64:
    """Compute ``C_0 = 1/m - 1/eta``; near zero by its series."""
    far = np.abs(eta) > _NEAR
    exact = 1 / choose(far, m, _ONE) - 1 / choose(far, eta, _ONE)
    return choose(far, exact, _evaluate_polynomial(_SERIES[0], eta))


def _compute_second_term(m: Array64, eta: Array64) -> Array64:
    """Compute ``C_1 = 1/eta^3 - 1/m^3 - 1/m^2 - 1/(12 m)``; near zero by its series."""
    far = np.abs(eta) > _NEAR
    inverse, other = 1 / choose(far, m, _ONE), 1 / choose(far, eta, _ONE)
    exact = other * other * other - inverse * (
        1 / 12 + inverse * (1 + inverse)
    )  # the time of a power depends on its base
    return choose(far, exact, _evaluate_polynomial(_SERIES[1], eta))


def _evaluate_polynomial(coefficients: tuple[float, ...], at: NDArray[Any]) -> Array64:
    value = np.full_like(at, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= at
        value += coefficient
    return value
