"""The covariance of the error in a posterior's mean, as a release states it.

It is computed from noised answers and declared facts alone, so it costs nothing (W3).
"""

import numpy as np

from app.inference.core.model import Array64

_ROUNDING = 1e-12
"""Negative eigenvalue of a correlation matrix that counts as rounding."""
_LEAST_DEVIATION = 1e-150
"""Least divisor of a covariance; its square is a normal number."""


def state_doubt(covariance: Array64) -> Array64 | None:
    """Make a symmetric, positive semidefinite copy of ``covariance`` ``(D, D)``.

    Negative eigenvalues of the correlation matrix become zero, so variances do not fall. None if a value is not finite
    or a variance is negative.
    """
    with np.errstate(all="ignore"):
        symmetric = np.asarray(0.5 * (covariance + covariance.T))
        if not np.isfinite(symmetric).all() or (symmetric.diagonal() < 0).any():
            return None
        deviation = np.maximum(np.sqrt(symmetric.diagonal()), _LEAST_DEVIATION)
        correlation = np.clip(symmetric / deviation / deviation[:, None], -2, 2)  # above 1: not a covariance
        values, vectors = np.linalg.eigh(correlation)
        if values[0] >= -_ROUNDING:
            return symmetric
        raised = (vectors * np.maximum(values, 0)) @ vectors.T * deviation * deviation[:, None]
        return np.asarray(0.5 * (raised + raised.T))


def combine_errors(noise: Array64, drifts: Array64) -> Array64 | None:
    """Add the squares of estimated shifts to the covariance of noise.

    Args:
        noise: covariance ``(D, D)`` of the noise in the mean.
        drifts: estimated shifts of the mean ``(k, D)``; the cause of each may be noise, or a search that ended early.

    Returns:
        The doubt ``(D, D)``. The variance of each parameter is at least its largest squared shift. None as for
        :func:`state_doubt`.
    """
    with np.errstate(all="ignore"):
        return state_doubt(noise + drifts.T @ drifts)
