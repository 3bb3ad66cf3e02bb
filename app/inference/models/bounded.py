"""Scores that are bounded without bias: the last step that the models share.

A score ``r v`` with residual ``r`` and direction ``v = W x`` is bounded by a weight that depends on the design row
alone: with ``|r| <= b(x)`` for every target and ``E[r | x] = 0`` under the model, ``min(1, C / (b ||v||)) r v`` has a
norm of at most C and conditional mean zero (Kuensch, Stefanski & Carroll, *JASA* 84, 1989). Residuals without a bound
are clipped first, and lose the mean that this leaves them with.

All functions here are of the row zone: total, no warnings; a row that is not finite gives zero.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array32
from app.inference.models.normal import log_cdf
from app.inference.private_zone.rowwise import zero_rows_unless

SHRINK: Final = np.float32(1 - 2.0**-12)
"""Leaves room for single precision: a norm that is to be at most C is not above it after rounding."""

ACTIVATION: Final = 40.0
"""Activations beyond count as these where scores are made: their exponentials, and products of two, are normal."""

_LEAST_CUT, _MOST_CUT = 1.0, 10.0


def lengths(directions: Array32) -> Array32:
    """L2 norms ``(n,)`` of ``directions`` ``(n, D)``."""
    norms: Array32 = np.sqrt(np.einsum("ij,ij->i", directions, directions))
    return norms


def bound_scores(directions: Array32, residual: Array32, bound: Array32, clip: float) -> Array32:
    """``min(1, C / (bound ||v||)) residual v`` for directions ``v`` ``(n, D)``; written over ``directions``."""
    norm = lengths(directions)
    factor = residual * np.minimum(1, np.float32(clip) * SHRINK / (bound * norm))
    return _scale(directions, factor, norm)


def odd(directions: Array32, residual: Array32, clip: float) -> Array32:
    """``v`` times the residual clipped to ``C / ||v||`` on both sides, for residuals that are symmetric about zero, or
    directions that are; written over ``directions``.
    """
    norm = lengths(directions)
    limit = np.float32(clip) * SHRINK / norm
    return _scale(directions, np.clip(residual, -limit, limit), norm + np.abs(residual))


def quadratic(directions: Array32, constant: Array32, residual: Array32, presence: Array32, clip: float) -> Array32:
    """``w (e v + (e^2 - E[e^2]) m k)`` with ``e`` a normal residual clipped to ``+-c``; written over ``directions``.

    ``v`` ``(n, D)`` are directions of the residual and ``k`` ``(D,)`` of its square; ``m`` ``(n,)`` is 1, or 0 in a
    null row. c is where ``c ||v|| + c^2 ||k|| = C``, between 1 and 10; the weight w makes up for what that leaves
    above C.
    """
    norm, square, most = lengths(directions), lengths(constant[None, :])[0], np.float32(clip)
    cut = 2 * most / (norm + np.sqrt(np.square(norm) + 4 * square * most))
    np.clip(cut, _LEAST_CUT, _MOST_CUT, out=cut)
    mean = 1 - cut * np.exp(-0.5 * np.square(cut)) * np.float32(math.sqrt(2 / math.pi))
    mean += 2 * (np.square(cut) - 1) * np.exp(log_cdf(-cut))
    bound = norm * cut + square * (np.square(cut) - mean)
    factor = np.minimum(1, most * SHRINK / bound)
    e, total = np.clip(residual, -cut, cut), norm + np.abs(residual)
    _scale(directions, factor * e, total)
    of_square = factor * (np.square(e) - mean) * np.clip(presence, 0, 1)
    zero_rows_unless(of_square, np.isfinite(of_square * total))
    directions += of_square[:, None] * constant
    return directions


def _scale(directions: Array32, factor: Array32, size: Array32) -> Array32:
    """``factor v``, zero where that or the ``size`` of what came in is not finite."""
    directions *= factor[:, None]
    zero_rows_unless(directions, np.isfinite(factor * size))
    return directions
