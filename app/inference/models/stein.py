"""Bounded residuals of negative binomial counts, by Stein's identity.

Under the model, their mean is exactly zero.

For counts with mean ``mu``, dispersion ``alpha`` and ``D = 1 + alpha mu``, and any bounded function ``g``,

    ``E[(Y - mu) g(Y) + mu (1 + alpha Y) (g(Y) - g(Y + 1))] = 0``.

With ``g = 1 / D``, the expression in brackets is the residual of the score, ``(Y - mu) / D``. With ``g = w / D`` it is
bounded, and its mean stays zero. The damping is ``w = (1 + u^2)^(-1/2)`` with ``u = (Y - mu) / T``, for a length T. No
sum over counts and no special function is needed. Source: Brown & Phillips, *Bernoulli* 5, 1999.

The bound for counts above the mean is ``(T s + mu D / T s c^2 + alpha mu s^2 c) / D``, with ``s = u w`` and ``c = w``
at a point between Y and ``Y + 1``. So s and c are the sine and cosine of one angle, and the largest value over all
angles is the bound. For counts below the mean the residual may exceed it slightly, because counts are integers.

Row zone: every value takes the same steps (W14).
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64

_ANGLES: Final = np.linspace(0.85, 0.5 * np.pi, 12)
_NODES: Final = [
    (float(s), float(s * c * c), float(s * s * c)) for s, c in zip(np.sin(_ANGLES), np.cos(_ANGLES), strict=True)
]
"""Values of ``s``, ``s c^2`` and ``s^2 c`` at a few angles. The bound is the largest value at these."""
_BETWEEN_NODES: Final = 1.003
"""Factor that covers larger values between two of these angles."""
_LATTICE: Final = 0.12
"""Largest excess of ``D`` times a residual over the bound below the mean, for means from 1 on; less in proportion."""
_LARGEST_SKEW_FACTOR: Final = 2 / 27**0.5
"""Largest value of ``s^2 c``."""
_MOST_CUT: Final = 1e12
"""Larger cuts count as this, so that the arithmetic stays finite."""


def choose_length(mean: Array64, alpha: float, cut: Array64) -> tuple[Array64, Array64]:
    """Choose T so that the largest residual is ``cut``, within a tenth of it.

    T is at least the standard deviation, because a smaller T would lose information. The largest residual may then far
    exceed ``cut``. ``mean`` and ``cut`` are ``(n,)``.

    Returns:
        T and the largest absolute residual, each ``(n,)``.
    """
    one_plus_skew, skew = 1 + alpha * mean, alpha * mean
    variance = mean * one_plus_skew
    lattice = _LATTICE * np.minimum(mean, 1)
    room = (np.minimum(cut, _MOST_CUT) * one_plus_skew - lattice) / _BETWEEN_NODES - _LARGEST_SKEW_FACTOR * skew
    length = np.maximum(room, np.sqrt(variance))
    spread, most = variance / length, np.zeros_like(mean)
    for of_length, of_spread, of_skew in _NODES:
        np.maximum(most, of_length * length + of_spread * spread + of_skew * skew, out=most)
    return length, (_BETWEEN_NODES * most + lattice) / one_plus_skew


def bound_residuals(y: Array64, mean: Array64, alpha: float, length: Array64) -> Array64:
    """Compute the bounded residuals of counts ``y``, all ``(n,)``; negative values count as zero."""
    y = np.maximum(y, 0)
    residual, damping = y - mean, _damp((y - mean) / length)
    change = damping - _damp((y + 1 - mean) / length)
    return np.asarray((residual * damping + mean * (1 + alpha * y) * change) / (1 + alpha * mean))


def _damp(u: Array64) -> Array64:
    """Compute ``(1 + u^2)^(-1/2)``, same shape."""
    return np.asarray(1 / np.sqrt(1 + np.square(u)))
