"""Laplace approximation of the posterior of weighted points, by damped Newton steps.

``pi_{u,w}(theta)`` is proportional to ``exp(sum_m w_m f(u_m, theta)) pi_0(theta)``. The approximation is ``N(mean,
H^-1)`` at the mode. ``H = L L'`` is the negative Hessian of the log-likelihood plus
:meth:`app.inference.core.priors.Prior.precision`, which for a normal prior is its negative Hessian.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from app.inference.core.model import Array64, Expansion
from app.inference.core.priors import Prior

MAX_NEWTON_STEPS = 100
MAX_HALVINGS = 200


class LaplaceDiverged(ArithmeticError):
    """There is no posterior: the weighted points or its logarithm are not finite."""


class Likelihood(Protocol):
    """The part of a model that the search for the mode needs."""

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""


@dataclass(frozen=True, slots=True)
class Laplace:
    """The Gaussian ``N(mean, (L L')^-1)``.

    ``mean`` is ``(D,)``, ``factor`` is the lower triangular ``L`` ``(D, D)``.
    """

    mean: Array64
    factor: Array64

    def draw(self, rng: np.random.Generator, count: int) -> Array64:
        """Draw ``(count, D)`` parameters in antithetic pairs ``mean +- delta``.

        If ``count`` is odd, one draw has no partner. Pairs do not change the distribution of a draw. They make odd and
        even parts of a potential uncorrelated over the sample, which removes most of the Monte Carlo noise of a
        covariance. The result has Fortran order, because products with few rows are then faster.
        """
        half = (count + 1) // 2
        normals = rng.standard_normal((len(self.mean), half)).T
        deviations = scipy.linalg.blas.dtrsm(1, self.factor, normals, side=1, lower=1, overwrite_b=1)
        draws = np.empty((len(self.mean), count)).T
        np.add(self.mean, deviations, out=draws[:half])
        np.subtract(self.mean, deviations[: count // 2], out=draws[half:])
        return draws


def solve_transposed(factor: Array64, right: Array64) -> Array64:
    """Solve ``L' x = right`` for a lower triangular ``L``."""
    solution: Array64
    solution, _ = scipy.linalg.lapack.dtrtrs(factor, right, lower=1, trans=1)
    return solution


def fit_laplace(
    model: Likelihood,
    rows: Array64,
    weights: Array64,
    prior: Prior,
    start: Array64,
    *,
    tolerance: float = 1e-10,
) -> Laplace:
    """Approximate the posterior at its mode by damped Newton steps.

    A step is halved until the log posterior rises (backtracking line search). Where the negative Hessian is indefinite,
    a model's scoring matrix replaces it. The factor is taken at the last expansion point. So a warm start on a slowly
    changing posterior costs one Cholesky factorisation.

    Args:
        model: gives the likelihood.
        rows: folded, ``(M, row_width)``.
        weights: ``(M,)``.
        prior: on the D parameters.
        start: where the search begins, ``(D,)``.
        tolerance: of the squared Newton decrement, which is twice the distance to the mode in nats.

    Raises:
        LaplaceDiverged: if rows or weights are not finite, or the log posterior overflows where the search ends.
    """
    posterior = _Posterior(model, rows, weights, prior)
    mean = start
    expansion = posterior.expand(mean)
    factor = _factorise(expansion)
    for _ in range(MAX_NEWTON_STEPS):
        step, _ = scipy.linalg.lapack.dpotrs(factor, expansion.gradient, lower=1)
        decrement = float(expansion.gradient @ step)
        if decrement < tolerance:
            return Laplace(mean + step, factor)
        climbed = posterior.climb(mean, expansion, step, decrement)
        if climbed is None:
            break
        mean, expansion = climbed
        factor = _factorise(expansion)
    return Laplace(mean, factor)


@dataclass(frozen=True, slots=True)
class _Posterior:
    model: Likelihood
    rows: Array64
    weights: Array64
    prior: Prior

    def expand(self, theta: Array64) -> Expansion:
        """Expand the log posterior; the value is the likelihood's alone (see :meth:`value`)."""
        likelihood = self.model.expand(self.rows, self.weights, theta)
        gradient, precision = likelihood.gradient + self.prior.gradient(theta), self.prior.precision(theta)
        scoring = None if likelihood.scoring is None else likelihood.scoring + precision
        return Expansion(likelihood.value, gradient, likelihood.information + precision, scoring)

    def value(self, theta: Array64, expansion: Expansion) -> float:
        """Compute the log posterior; only the line search needs it."""
        return expansion.value + float(self.prior.log_density(theta[None, :])[0])

    def climb(
        self, mean: Array64, expansion: Expansion, step: Array64, decrement: float
    ) -> tuple[Array64, Expansion] | None:
        """Take the longest halved step that raises the log posterior, up to rounding.

        Returns None if no step raises it, or if rounding hides the rise of a halved step. Then the gradient is
        rounding, too, or does not belong to the value, so further steps would gain nothing.

        Raises:
            LaplaceDiverged: if no step raises it, and it is not finite at ``mean``.
        """
        value = self.value(mean, expansion)
        slack = 1e-12 * abs(value)
        length = 1.0
        for _ in range(MAX_HALVINGS):
            proposal = mean + length * step
            expansion = self.expand(proposal)
            reached = self.value(proposal, expansion)
            if reached >= value + 1e-4 * length * decrement - slack:
                return None if length < 1 and reached <= value + slack else (proposal, expansion)
            length *= 0.5
        if not math.isfinite(value):
            raise LaplaceDiverged("the log posterior is not finite")
        return None


def _factorise(expansion: Expansion) -> Array64:
    """Compute the lower Cholesky factor of the information; if it is indefinite, that of the scoring matrix."""
    if expansion.scoring is None:
        return _cholesky(expansion.information)
    factor: Array64
    factor, fault = scipy.linalg.lapack.dpotrf(expansion.information, lower=1, clean=1)
    return _cholesky(expansion.scoring) if fault or not math.isfinite(factor[-1, -1]) else factor


def _cholesky(matrix: Array64) -> Array64:
    """Compute the lower Cholesky factor.

    If rounding has made the matrix indefinite, the smallest sufficient ridge, up to a power of ten, is added.
    """
    factor: Array64
    factor, fault = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    ridge = np.finfo(np.float64).eps * float(np.trace(matrix)) if fault else 0.0
    while fault and math.isfinite(ridge) and ridge > 0:
        lifted = matrix.copy()
        lifted.flat[:: len(matrix) + 1] += ridge
        factor, fault = scipy.linalg.lapack.dpotrf(lifted, lower=1, clean=1)
        ridge *= 10
    if fault or not math.isfinite(factor[-1, -1]):
        raise LaplaceDiverged("the weighted points are not finite")
    return factor
