"""The belief about design rows: how many there are, and draws that represent them.

All expectations over rows in later modules are means over the draws, times the number of rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.linear_algebra import compute_mean_gram, symmetric
from app.inference.core.model import Array32, Array64, Model
from app.inference.models.location_scale import UnknownScale
from app.inference.models.residuals import UnboundedTargets

_LEAST_EIGENVALUE = 1e-5
"""Least eigenvalue of a correlation matrix before its root is taken."""
_TIMES = 32
"""Draws of noise for each quantile."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS
"""Gauss-Legendre quadrature on [0, 1], for means over a line of parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A number of rows, and M draws that represent them.

    ``count`` is the number of rows. ``draws`` ``(M, p)`` are design rows. ``standard`` ``(M, k)`` are the k columns
    without the intercept before :func:`colour`, with mean 0 and variance 1. ``intercept``: the last coordinate is 1.
    ``per_unit`` is the mean number of rows in a unit, among units with rows.
    ``uniform``: there is no target, and all rows have the same information at every parameter. Then one draw represents
    the information, and all of them the scores.
    ``noise`` ``(M,)`` represents standardised residuals of a model with an unknown scale; None: of another model.
    """

    model: Model
    count: float
    standard: Array64
    draws: Array64
    intercept: bool
    per_unit: float
    uniform: bool = False
    noise: Array64 | None = None

    @property
    def one_predictor(self) -> bool:
        """Whether a row's information is ``v x x'``; the number v depends on its predictor."""
        width = self.draws.shape[1]
        return self.model.predictors == 1 and self.model.dimension == width and self.intercept and width > 1

    def factors(self, theta: Array64) -> Array64:
        """Compute the information factors ``(M, r, D)`` at ``theta`` ``(D,)``; M is 1 if rows are uniform."""
        folded = self.fold(None)
        return self.model.information_factors(folded[:1] if self.uniform else folded, theta).astype(np.float64)

    def fold(self, targets: Array64 | None) -> Array32:
        """Fold the draws with ``targets`` ``(M,)``; without them for results that do not depend on targets."""
        y = np.ones(len(self.draws)) if targets is None else targets
        return self.model.fold(self.draws, y).astype(np.float32)

    def information(self, theta: Array64, weights: Array64 | float = 1.0) -> Array64:
        """Compute the information ``(D, D)`` of all rows at ``theta``, without the prior's precision.

        ``weights`` are ``(M,)``, one for each draw, or one number.
        """
        return self.gram(self.factors(theta), weights)

    def simulate(self, theta: Array64) -> Array32:
        """Simulate folded rows ``(2 M, row_width)`` that follow the model at ``theta`` ``(D,)``.

        ``noise`` is the same for every ``theta``. So differences between parameters are hardly random.
        """
        assert isinstance(self.model, UnknownScale)
        assert self.noise is not None
        middle, noise = self.draws @ theta[: self.draws.shape[1]], self.model.scale(theta) * self.noise
        return np.concatenate([self.fold(middle + noise), self.fold(middle - noise)])

    def gram(self, factors: Array64 | Array32, weights: Array64 | float = 1.0) -> Array64:
        """Compute the Gram matrix ``(D, D)`` of information factors, for all rows.

        It is ``count / M`` times the sum over draws of ``w_m F_m' F_m``, with factors ``(M, r, D)`` and ``weights``
        ``(M,)``, not negative.
        """
        return self.count * compute_mean_gram(factors, weights)

    def path_factors(self, start: Array64, end: Array64) -> Array64:
        """Compute factors whose Gram matrix is the secant of the mean score.

        The factors are ``(M, r', D)``. Let ``end`` be the true parameter. The mean score at ``start`` is the secant
        times ``end - start``. Scores of residuals that are linear in the coefficients have the information at
        ``start``. For other models, it is the mean of the information on the line between them. That is exact, up to
        the quadrature, for one linear predictor with a canonical link (logistic, Poisson). Otherwise it is an
        approximation, 8 % off for probit and half for negative binomial where predictors change by 1.5.
        """
        if isinstance(self.model, UnboundedTargets) and self.model.squares and not self.model.redescending:
            return self.factors(start)
        if not self.one_predictor:
            between = [
                np.sqrt(w) * self.factors(start + s * (end - start)) for s, w in zip(_NODES, _WEIGHTS, strict=True)
            ]
            return np.asarray(np.concatenate(between, axis=1), dtype=np.float64)
        first, last = self.draws @ start, self.draws @ end
        mean = sum(w * self.curvature(first + s * (last - first)) for s, w in zip(_NODES, _WEIGHTS, strict=True))
        return np.asarray((self.draws * np.sqrt(mean)[:, None])[:, None, :])

    def curvature(self, predictors: Array64) -> Array64:
        """Compute v of the information ``v x x'`` at linear predictors ``(n,)``.

        The result is ``(n,)``. It is for models with one predictor. The model is evaluated at rows whose first
        coordinate is the predictor, with coefficient 1.
        """
        width = self.draws.shape[1]
        x = np.zeros((len(predictors), width))
        x[:, 0], x[:, -1] = predictors, 1.0
        first = np.zeros(self.model.dimension)
        first[0] = 1.0
        rows = self.model.fold(x, np.ones(len(x))).astype(np.float32)
        factors = self.model.information_factors(rows, first)[:, :, -1].astype(np.float64)
        return np.asarray(np.square(factors).sum(axis=1))

    @property
    def has_constant_curvature(self) -> bool:
        """Whether all coefficients give a row the same information; only with an intercept."""
        if not self.intercept or self.model.predictors != 1 or self.draws.shape[1] < 2:
            return False
        near, far = self.curvature(np.array([0.0, 1.0]))
        return bool(near == far)

    def change(self, step: Array64) -> Array64:
        """Compute the change of each draw's linear predictors by a step.

        ``step`` of the parameter is ``(D,)``, the result ``(M,)``. It is the root mean square over the predictors, or
        the change of a further parameter (a log noise scale) if that is larger. It is 0 if rows are uniform, because
        no step changes their information.
        """
        if self.uniform:
            return np.zeros(1)
        width = self.draws.shape[1]
        blocks = step[: self.model.predictors * width].reshape(-1, width)
        further = float(np.max(np.abs(step[blocks.size :]), initial=0.0))
        return np.asarray(np.maximum(np.sqrt(np.square(self.draws @ blocks.T).mean(axis=1)), further))

    def with_moments(self, count: float, mean: Array64, covariance: Array64) -> "Rows":
        """Replace the number of rows, the ``mean`` ``(k,)`` and the ``covariance`` ``(k, k)``."""
        return replace(self, count=count, draws=colour(self.standard, mean, covariance, intercept=self.intercept))

    def around(self, mean: Array64, doubt: Array64) -> "Rows":
        """Move the draws to ``mean`` ``(p,)``, and add ``doubt`` ``(p, p)`` to their covariance."""
        covariance = np.atleast_2d(np.cov(self.draws, rowvar=False)) + doubt
        return self.with_moments(self.count, mean, covariance)


def draw_noise(rng: np.random.Generator, model: Model, count: int) -> Array64:
    """Draw symmetric noise ``(count,)`` of scale 1 with accurate moments: quantiles of many draws, in random order."""
    assert isinstance(model, UnknownScale)
    theta, rows = np.zeros(model.dimension), np.zeros((_TIMES * count, model.dimension - 1))
    noise = np.sort(model.sample_targets(rng, rows, theta))[_TIMES // 2 :: _TIMES] / model.scale(theta)
    return rng.permutation(0.5 * (noise - noise[::-1]))


def colour(standard: Array64, mean: Array64, covariance: Array64, *, intercept: bool) -> Array64:
    """Move standardised draws as little as possible to given moments, and append an intercept.

    The map is the optimal linear transport between normal laws (Dowson & Landau, *J. Multivariate Anal.* 12, 1982). So
    draws that have the correlations already keep the laws of their columns.

    Args:
        standard: draws ``(M, k)`` with mean 0 and variance 1 in each column.
        mean: of the result, ``(k,)``.
        covariance: of the result, ``(k, k)``.
        intercept: whether to append a column of ones.
    """
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 1e-30))
    goal = symmetric(covariance / np.outer(deviation, deviation))
    root, inverse = _compute_roots(symmetric(standard.T @ standard / len(standard)))
    middle, _ = _compute_roots(symmetric(root @ goal @ root))
    moved = mean + (standard @ inverse @ middle @ inverse) * deviation
    return np.column_stack([moved, np.ones(len(moved))]) if intercept else moved


def _compute_roots(matrix: Array64) -> tuple[Array64, Array64]:
    """Compute the symmetric square root of a matrix and its inverse, with limited eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.sqrt(np.maximum(values, _LEAST_EIGENVALUE))
    return (vectors * values) @ vectors.T, (vectors / values) @ vectors.T
