"""A precision from a noised information matrix: the Laplace step of a private posterior.

The matrix is asked for in coordinates ``theta / s``, in which it is near a multiple of the identity if ``s`` are
standard deviations. Noise is shrunk away in two blocks, the diagonal towards its mean and the rest towards zero, each
by the share of its squared length that noise explains (James & Stein 1961), and no eigenvalue is left below a share of
the mean. So whatever the noise, a precision comes out that is no worse than ``diag(s^-2)`` up to a factor.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64

_LEAST_EIGENVALUE: Final = 0.05
"""Of the mean of the diagonal."""
_LEAST_RATIO: Final = 1e-8
"""Of the largest eigenvalue: whatever the answer was, the inverse exists."""


def denoise(information: Array64, noise: float) -> Array64:
    """The symmetric ``(D, D)`` ``information`` without what ``noise`` explains, positive definite.

    ``noise``: the standard deviation on the diagonal; off it, it is smaller by sqrt(2).
    """
    size = len(information)
    diagonal = information.diagonal()
    level = max(float(diagonal.mean()), noise / np.sqrt(size), float(np.finfo(np.float64).tiny))
    spread = np.diag(diagonal - level)
    across = information - np.diag(diagonal)
    found = level * np.eye(size) + _shrunk(spread, size * noise**2)
    found += _shrunk(across, 0.5 * size * (size - 1) * noise**2)
    values, vectors = np.linalg.eigh(found)
    least = max(_LEAST_EIGENVALUE * level, _LEAST_RATIO * float(np.abs(values).max()))
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def _shrunk(block: Array64, explained: float) -> Array64:
    """``block`` times the share of its squared length that noise, of squared length ``explained``, does not explain."""
    length = float(np.square(block).sum())
    return block * max(0.0, 1 - explained / length) if length > 0 else block
