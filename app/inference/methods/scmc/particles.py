"""Weighted particles: effective number, powers of a likelihood, resampling, and random-walk proposals."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64

_HALVINGS: Final = 40
_RIDGE: Final = 1e-10
_SMALLEST: Final = 1e-200
_SCALE: Final = 2.38
"""The best scale of a random walk in D dimensions is ``2.38 / sqrt(D)`` (Roberts, Gelman & Gilks 1997)."""


def normalise(log_weights: Array64) -> Array64:
    """Compute weights ``(P,)`` that sum to one."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def count_effective(log_weights: Array64) -> float:
    """Compute the effective number of particles, ``1 / sum W^2``; between 1 and P."""
    return float(1 / np.square(normalise(log_weights)).sum())


def find_power(log_weights: Array64, potentials: Array64, most: float, least_effective: float) -> float:
    """Find the largest power of a likelihood that leaves enough effective particles.

    Args:
        log_weights: ``(P,)``.
        potentials: log-likelihoods ``(P,)``.
        most: the largest power that is wanted.
        least_effective: the effective number that must remain, up to the accuracy of a bisection.
    """
    if count_effective(log_weights + most * potentials) >= least_effective:
        return most
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if count_effective(log_weights + middle * potentials) >= least_effective:
            low = middle
        else:
            high = middle
    return high


def resample(weights: Array64, offset: float) -> NDArray[np.int64]:
    """Choose P particles by systematic resampling.

    Over a uniform offset, particle p is chosen ``P weights[p]`` times on average, and never differs from it by 1.

    Args:
        weights: ``(P,)``, with the sum one.
        offset: in [0, 1).
    """
    count = len(weights)
    places = (np.arange(count) + offset) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), places, side="right"), count - 1)


def compute_proposal_factor(particles: Array64, weights: Array64) -> Array64:
    """Compute a factor ``(D, D)`` of the random walk's covariance: the particles' own, times ``2.38^2 / D``."""
    d = particles.shape[1]
    deviations = particles - weights @ particles
    covariance = (deviations * weights[:, None]).T @ deviations * (_SCALE**2 / d)
    ridge = _RIDGE * float(np.trace(covariance)) / d + _SMALLEST
    return np.linalg.cholesky(covariance + ridge * np.eye(d))
