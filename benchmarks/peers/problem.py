"""The logistic regression that every peer solves, and the Gaussian belief that it releases.

All peers see the same design rows: the declared public bounds map to [-1, 1], and the intercept is the last coordinate.
The prior is ``N(0, I / precision)``. Neighbours differ in one row that is replaced by zeros (zero-out). The rows of a
clipped sum differ in the same way under add-remove, because the number of rows is public in both.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.post.laplace import Laplace
from benchmarks.cases import Case, make_design_rows

Settings = Mapping[str, float]
"""The parameters of a peer by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A private logistic regression.

    ``x`` is ``(n, D)`` with the intercept last, ``y`` ``(n,)`` holds 0 or 1. ``norm`` is the largest length of a row
    that the declaration allows. ``precision`` is the prior's, equal for all coefficients.
    """

    x: Array64
    y: Array64
    norm: float
    precision: float
    delta: float

    @property
    def rows(self) -> int:
        """The number of rows n, which is public."""
        return len(self.y)

    @property
    def parameters(self) -> int:
        """The number of coefficients D, intercept included."""
        return int(self.x.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """A mean ``(D,)`` and a precision ``(D, D)``; without a precision, a point estimate."""

    mean: Array64
    precision: Array64 | None = None


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of a belief from the exact posterior.

    ``kl`` is of the released Gaussian, in nats. ``mean_error`` is the root mean square error of the mean in posterior
    standard deviations, over the directions of the posterior. ``covers`` shows whether the covariance is the peer's.
    """

    kl: float
    mean_error: float
    covers: bool


def make_problem(case: Case) -> Problem:
    """Make the problem of a case whose prior has one scale."""
    x, y = make_design_rows(case)
    precision = case.problem.prior.precision(np.zeros(x.shape[1])).diagonal()
    assert case.facts.delta is not None
    assert np.all(precision == precision[0])
    norm = math.sqrt(len(case.spec.features) + 1)  # a feature adds at most 1, whether number, flag or category
    return Problem(x, y, norm, float(precision[0]), case.facts.delta)


def measure_distance(belief: Belief, exact: Laplace) -> Distance:
    """Measure a belief; a point estimate is given the exact covariance."""
    shift = exact.factor.T @ (belief.mean - exact.mean)
    dimension, square = len(shift), float(shift @ shift)
    error = math.sqrt(square / dimension)
    if belief.precision is None:
        return Distance(square / 2, error, covers=False)
    factor = np.linalg.cholesky(belief.precision)
    ratio = np.linalg.solve(factor, exact.factor)
    logs = np.log(np.diag(factor)).sum() - np.log(np.diag(exact.factor)).sum()
    return Distance(float(0.5 * (np.sum(ratio**2) - dimension + square) + logs), error, covers=True)


def compute_scores(x: Array64, y: Array64, theta: Array64) -> tuple[Array64, Array64]:
    """Compute residuals ``y - p`` ``(n,)`` and variances ``p (1 - p)`` ``(n,)``."""
    p = expit(x @ theta)
    return np.asarray(y - p), np.asarray(p * (1 - p))


def shrink_rows(x: Array64, longest: float) -> Array64:
    """Scale each row down to the length ``longest``."""
    lengths = np.sqrt(np.vecdot(x, x))
    return np.asarray(x * np.minimum(1, longest / np.maximum(lengths, 1e-300))[:, None])
