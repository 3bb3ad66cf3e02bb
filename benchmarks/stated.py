"""Statements of a release about its error: its grade, and a covariance for its mean.

Newer engines state a grade ``reliability`` and a covariance ``doubt``, as attributes of the release or in its
diagnostics. For others, the grade follows from ``trusted``, and ``doubt`` is ``2 noise_kl / D`` times the posterior's
covariance.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from app.inference.core.model import Array64
from app.inference.core.release import Pseudocoreset
from app.inference.post.laplace import Laplace

CALIBRATED, CENTRE_ONLY, NOT_USABLE = GRADES = ("calibrated", "centre-only", "not-usable")
QUANTILE: Final = 1.959963984540054
"""Half the width of a 95 % interval, in standard deviations."""


class Stated(NamedTuple):
    """The statements of a release.

    ``doubt`` ``(D, D)`` is the covariance of the error of the posterior's mean, in the design's coordinates.
    """

    trusted: bool
    noise_kl: float
    grade: str
    doubt: Array64


class Coverage(NamedTuple):
    """Shares of parameters whose exact mean is in a 95 % interval.

    The interval is around the mean of the release. ``total`` is for the variance ``posterior + doubt``, ``of_noise``
    for ``doubt`` alone.
    """

    total: float
    of_noise: float


def read_statement(release: Pseudocoreset, belief: Laplace) -> Stated:
    """Read the statements of ``release``; ``belief`` is its posterior.

    Raises:
        ValueError: for an unknown grade.
    """
    trusted, noise_kl = bool(release.diagnostics["trusted"]), float(release.diagnostics["noise_kl"])
    grade, doubt = _read(release, "reliability"), _read(release, "doubt")
    grade = getattr(grade, "grade", grade)
    grade = (CALIBRATED if trusted else NOT_USABLE) if grade is None else str(getattr(grade, "value", grade))
    if grade not in GRADES:
        raise ValueError(f"unknown grade: {grade}")
    if doubt is None:
        doubt = 2 * noise_kl / len(belief.mean) * compute_covariance(belief)
    return Stated(trusted, noise_kl, grade, np.asarray(doubt, dtype=np.float64))


def _read(release: Pseudocoreset, name: str) -> Any:
    attribute = getattr(release, name, None)
    return release.diagnostics.get(name) if attribute is None else attribute


def compute_covariance(belief: Laplace) -> Array64:
    """Compute the covariance ``(D, D)`` of a posterior."""
    inverse = solve_triangular(belief.factor, np.eye(len(belief.mean)), lower=True)
    return np.asarray(inverse.T @ inverse)


def measure_coverage(belief: Laplace, doubt: Array64, exact: Laplace) -> Coverage:
    """Measure how many parameters of ``exact`` the intervals of ``belief`` contain."""
    distance = np.abs(belief.mean - exact.mean)
    of_noise = np.maximum(doubt.diagonal(), 0)
    total = compute_covariance(belief).diagonal() + of_noise
    return Coverage(*(float(np.mean(distance <= QUANTILE * np.sqrt(variance))) for variance in (total, of_noise)))
