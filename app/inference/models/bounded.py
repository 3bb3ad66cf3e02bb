"""Bounds on scores that leave them conditionally unbiased, for all models.

A score ``r v`` with residual ``r`` and direction ``v = W x`` is bounded by a weight that depends on the design row
alone. Let ``|r| <= b(x)`` for every target and ``E[r | x] = 0`` under the model. Then ``min(1, C / (b ||v||)) r v`` has
norm at most C and conditional mean zero (Kuensch, Stefanski & Carroll, *JASA* 84, 1989). Residuals without a bound are
clipped first, and the mean of the clipped residual is subtracted.

All functions here are in the row zone: total, without warnings; a row that is not finite gives zero.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array32
from app.inference.models.normal import log_cdf
from app.inference.private_zone.rowwise import zero_rows_unless

SHRINK: Final = np.float32(1 - 2.0**-12)
"""Margin for single precision, so that a norm bounded by C is not above C after rounding."""

ACTIVATION: Final = 40.0
"""Linear predictors are clipped to this in scores. Then no exponential, and no product of two, is subnormal."""

_LEAST_CUT, _MOST_CUT = 1.0, 10.0
"""Range of the cut of a normal residual in quadratic scores, in standard deviations."""


def compute_norms(directions: Array32) -> Array32:
    """Compute L2 norms ``(n,)`` of ``directions`` ``(n, D)``."""
    norms: Array32 = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    return norms


def bound_scores(directions: Array32, residual: Array32, bound: Array32, clip: float) -> Array32:
    """Compute ``min(1, C / (bound ||v||)) residual v`` in place.

    ``directions`` ``v`` are ``(n, D)``, ``residual`` and its ``bound`` ``(n,)``; ``clip`` is C.
    """
    norm = compute_norms(directions)
    factor = residual * np.minimum(1, np.float32(clip) * SHRINK / (bound * norm))
    return _scale(directions, factor, norm)


def bound_symmetric_scores(directions: Array32, residual: Array32, clip: float) -> Array32:
    """Compute ``v`` times the residual clipped to ``+-C / ||v||``, in place.

    The result is unbiased if residuals, or directions, are distributed symmetrically about zero. ``directions`` ``v``
    are ``(n, D)``, ``residual`` is ``(n,)``.
    """
    norm = compute_norms(directions)
    limit = np.float32(clip) * SHRINK / norm
    return _scale(directions, np.clip(residual, -limit, limit), norm + np.abs(residual))


def bound_quadratic_scores(
    directions: Array32, constant: Array32, residual: Array32, presence: Array32, clip: float
) -> Array32:
    """Bound scores that are quadratic in a normal residual, in place.

    Computes ``w (e v + (e^2 - E[e^2]) m k)`` with the clipped residual ``e``. ``directions`` ``v`` ``(n, D)`` multiply
    the residual, and ``constant`` ``k`` ``(D,)`` its square. ``presence`` ``m`` ``(n,)`` is 1, or 0 in a null row. The
    residual is clipped to ``+-c``, where c solves ``c ||v|| + c^2 ||k|| = C``, within 1 to 10. If the norm is still
    larger than C, the weight w reduces it to C.
    """
    norm, square, most = compute_norms(directions), compute_norms(constant[None, :])[0], np.float32(clip)
    cut = 2 * most / (norm + np.sqrt(np.square(norm) + 4 * square * most))
    np.clip(cut, _LEAST_CUT, _MOST_CUT, out=cut)
    mean = 1 - cut * np.exp(-0.5 * np.square(cut)) * np.float32(math.sqrt(2 / math.pi))
    mean += 2 * (np.square(cut) - 1) * np.exp(log_cdf(-cut))
    bound = norm * cut + square * (np.square(cut) - mean)
    factor = np.minimum(1, most * SHRINK / bound)
    e = np.clip(residual, -cut, cut)
    return add_scores(
        directions, constant, factor * e, factor * (np.square(e) - mean), presence, norm + np.abs(residual)
    )


def add_scores(  # noqa: PLR0917  (two factors and two vectors)
    directions: Array32, constant: Array32, factor: Array32, own: Array32, presence: Array32, size: Array32
) -> Array32:
    """Compute ``factor v + own m k`` in place; a term is zero where it or ``size`` is not finite.

    ``directions`` ``v`` are ``(n, D)``, ``constant`` ``k`` is ``(D,)``, all others ``(n,)``. ``presence`` ``m`` is
    clipped to 0 and 1. ``size`` measures the inputs, and serves only to detect inputs that are not finite.
    """
    _scale(directions, factor, size)
    own = own * np.clip(presence, 0, 1)
    zero_rows_unless(own, np.isfinite(own * size))
    directions += own[:, None] * constant
    return directions


def _scale(directions: Array32, factor: Array32, size: Array32) -> Array32:
    """Compute ``factor v`` in place; zero where ``factor`` or ``size`` is not finite."""
    directions *= factor[:, None]
    zero_rows_unless(directions, np.isfinite(factor * size))
    return directions
