"""Bounded residuals of negative binomial counts by Stein's identity.

Their mean is exactly zero.

For counts with mean ``mu``, dispersion ``alpha`` and ``D = 1 + alpha mu``, and any bounded function ``g``,

    ``E[(Y - mu) g(Y) + mu (1 + alpha Y) (g(Y) - g(Y + 1))] = 0``.

With ``g = 1 / D`` this is the score's residual ``(Y - mu) / D``. With ``g = w / D`` and the damping
``w = (1 + u^2)^(-1/2)``, ``u = (Y - mu) / T``, it is bounded, and its mean stays zero. No sum over counts and no
special function is needed. Source: Brown & Phillips, *Bernoulli* 5, 1999.

The bound: let ``s = u w`` and ``c = w`` at a point between Y and ``Y + 1``. Then the expression is at most
``(T s + mu D / T s c^2 + alpha mu s^2 c) / D`` above the mean; below, the distance of two counts may add a little.

Row zone: every value takes the same steps (W14).
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64

_ANGLES: Final = np.linspace(0.85, 0.5 * np.pi, 12)
_NODES: Final = [
    (float(s), float(s * c * c), float(s * s * c)) for s, c in zip(np.sin(_ANGLES), np.cos(_ANGLES), strict=True)
]
"""Values of ``s``, ``s c^2`` and ``s^2 c`` among which is the largest bound, except for ``_BETWEEN``."""
_BETWEEN: Final = 1.003
_LATTICE: Final = 0.12
_LARGEST: Final = 2 / 27**0.5
"""Largest value of ``s^2 c``."""
_MOST_CUT: Final = 1e12


def choose_length(mean: Array64, alpha: float, cut: Array64) -> tuple[Array64, Array64]:
    """Choose the largest T for which the residual is at most ``cut``.

    If there is none, T is the standard deviation, and the residual may be larger. A smaller T would keep less of the
    information. ``mean`` and ``cut`` are ``(n,)``.

    Returns:
        T and the largest absolute residual, each ``(n,)``.
    """
    rest, skew = 1 + alpha * mean, alpha * mean
    variance = mean * rest
    lattice = _LATTICE * np.minimum(mean, 1)
    room = (np.minimum(cut, _MOST_CUT) * rest - lattice) / _BETWEEN - _LARGEST * skew
    length = np.maximum(room, np.sqrt(variance))
    spread, most = variance / length, np.zeros_like(mean)
    for own, of_spread, of_skew in _NODES:
        np.maximum(most, own * length + of_spread * spread + of_skew * skew, out=most)
    return length, (_BETWEEN * most + lattice) / rest


def bound_residuals(y: Array64, mean: Array64, alpha: float, length: Array64) -> Array64:
    """Compute the bounded residuals of counts ``y``, all ``(n,)``; negative counts count as zero."""
    y = np.maximum(y, 0)
    gap, damping = y - mean, _damp((y - mean) / length)
    change = damping - _damp((y + 1 - mean) / length)
    return np.asarray((gap * damping + mean * (1 + alpha * y) * change) / (1 + alpha * mean))


def _damp(u: Array64) -> Array64:
    """Compute ``(1 + u^2)^(-1/2)``, same shape."""
    return np.asarray(1 / np.sqrt(1 + np.square(u)))
