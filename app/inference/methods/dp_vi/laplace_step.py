"""Shrinkage of a noised information matrix: the Laplace step of a private posterior.

The matrix is measured in coordinates ``theta / s``. If ``s`` are standard deviations, it is near a multiple of the
identity there. The diagonal is shrunk towards its mean and the rest towards zero. Each block is shrunk by the share of
its squared length that is expected from noise (James & Stein 1961). Eigenvalues are raised to at least a share of the
mean. So for any noise the result is a precision, and up to a factor it is no worse than ``diag(s^-2)``.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64

_LEAST_EIGENVALUE: Final = 0.05
"""Least eigenvalue, relative to the mean of the diagonal."""
_LEAST_RATIO: Final = 1e-8
"""Least eigenvalue, relative to the largest, so that the inverse exists for any answer."""


def denoise(information: Array64, noise: float) -> Array64:
    """Shrink the noise in a symmetric ``information`` ``(D, D)``; the result is positive definite.

    ``noise`` is the standard deviation on the diagonal; off the diagonal it is smaller by sqrt(2).
    """
    size = len(information)
    diagonal = information.diagonal()
    level = max(float(diagonal.mean()), noise / np.sqrt(size), float(np.finfo(np.float64).tiny))
    spread = np.diag(diagonal - level)
    across = information - np.diag(diagonal)
    shrunk = level * np.eye(size) + _shrink(spread, size * noise**2)
    shrunk += _shrink(across, 0.5 * size * (size - 1) * noise**2)
    values, vectors = np.linalg.eigh(shrunk)
    least = max(_LEAST_EIGENVALUE * level, _LEAST_RATIO * float(np.abs(values).max()))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _shrink(block: Array64, expected: float) -> Array64:
    """Shrink ``block`` by the share of its squared length that is expected from noise."""
    length = float(np.square(block).sum())
    return block * max(0.0, 1 - expected / length) if length > 0 else block
