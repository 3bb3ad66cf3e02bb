"""Bounded scores of Student-t noise with an unknown scale.

The score of a row is ``r(e) v + s(e) m k`` with ``r(e) = (nu + 1) e / (nu + e^2)`` and ``s(e) = e r(e) - 1``. The
residual ``e`` is clipped to ``+-c``. By symmetry ``r`` keeps the mean zero; the mean of ``e r(e)`` is subtracted. With
``t = c^2 / (nu + c^2)`` and the incomplete beta function I, that mean is

    ``I_t(3/2, nu/2) + (nu + 1) t I_(1-t)(nu/2, 1/2)``,

because ``e^2 / (nu + e^2)`` has a beta distribution. It is interpolated by one polynomial in ``1/c``, so every row
takes the same steps (W14).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import scipy

from app.inference.core.model import Array32, Array64
from app.inference.models.bounded import SHRINK, add_scores, compute_norms

LEAST_CUT, MOST_CUT = 1.0, 10.0
_DEGREE: Final = 20
_MIDDLE, _HALF = 0.5 / LEAST_CUT + 0.5 / MOST_CUT, 0.5 / LEAST_CUT - 0.5 / MOST_CUT


def bound_location_scale_scores(  # noqa: PLR0917  (arguments of bound_quadratic_scores, and the shape)
    directions: Array32, constant: Array32, residual: Array32, presence: Array32, clip: float, nu: float
) -> Array32:
    """Bound scores by clipping residuals, subtracting a mean, and weighting, in place.

    Computes ``w (r(e) v + (s(e) - E[s(e)]) m k)`` with the clipped residual ``e``.
    ``directions`` ``v`` are ``(n, D)``, ``constant`` ``k`` is ``(D,)``, ``residual`` ``(n,)``. ``presence`` ``m``
    ``(n,)`` is 1, or 0 in a null row. The cut c solves ``r(c) ||v|| + c r(c) ||k|| = C`` if that is possible, from 1
    to 10. The weight w reduces the norm to C if it is still larger.
    """
    norm, square, most = compute_norms(directions), compute_norms(constant[None, :])[0], np.float32(clip)
    linear = (nu + 1) * norm
    discriminant = np.maximum(np.square(linear) + 4 * nu * most * ((nu + 1) * square - most), 0)
    cut = np.clip(2 * nu * most / (linear + np.sqrt(discriminant)), LEAST_CUT, MOST_CUT)
    mean = compute_mean(cut, nu)
    steepest = _slope(np.minimum(cut, np.float32(math.sqrt(nu))), nu)
    highest = np.maximum(cut * _slope(cut, nu) - mean, mean)
    factor = np.minimum(1, most * SHRINK / (norm * steepest + square * highest))
    e = np.clip(residual, -cut, cut)
    slope = _slope(e, nu)
    return add_scores(
        directions, constant, factor * slope, factor * (e * slope - mean), presence, norm + np.abs(residual)
    )


def _slope(e: Array32, nu: float) -> Array32:
    """Compute ``(nu + 1) e / (nu + e^2)``, same shape."""
    slope = np.square(e)
    slope += np.float32(nu)
    np.divide(e, slope, out=slope)
    slope *= np.float32(nu + 1)
    return slope


def compute_mean(cut: Array32, nu: float) -> Array32:
    """Compute ``E[e r(e)]`` of residuals that are clipped to ``+-cut``, same shape. Row zone."""
    place = (np.reciprocal(cut) - np.float32(_MIDDLE)) * np.float32(2 / _HALF)
    last, before = np.zeros_like(cut), np.zeros_like(cut)
    first, *coefficients = _interpolate_mean(nu)
    for coefficient in reversed(coefficients):  # Clenshaw's recurrence
        before, last = last, place * last - before + np.float32(coefficient)
    mean: Array32 = np.float32(first) + np.float32(0.5) * place * last - before
    return mean


@lru_cache(maxsize=16)
def _interpolate_mean(nu: float) -> tuple[float, ...]:
    """Interpolate the mean by Chebyshev polynomials in ``1/c``; their error is below 1e-6 for ``nu`` from 1 to 100."""

    def compute(x: Array64) -> Array64:
        squares = 1 / np.square(_MIDDLE + _HALF * x)
        inside = squares / (nu + squares)
        below, above = scipy.special.betainc(1.5, nu / 2, inside), scipy.special.betainc(nu / 2, 0.5, 1 - inside)
        return np.asarray(below + (nu + 1) * inside * above)

    interpolate: Callable[..., Array64] = np.polynomial.chebyshev.chebinterpolate
    return tuple(interpolate(compute, _DEGREE).tolist())
