"""The belief about design rows: how many there are, and draws of them."""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array32, Array64, Model
from app.inference.methods.one_belief.linear_algebra import symmetric
from app.inference.models.residuals import UnboundedTargets

_LEAST_EIGENVALUE = 1e-3
_LEAST_WAY, _MOST_WAY = 1e-6, 5.0  # of the logarithm of a noise scale
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """``count`` rows, as ``draws`` ``(M, p)`` stand for them; ``standard`` ``(M, k)`` are the draws before colouring.

    ``intercept``: whether the last coordinate is 1. ``one_predictor``: whether a row's information is a number, which
    depends on its linear predictor, times ``x x'``.
    """

    model: Model
    count: float
    standard: Array64
    draws: Array64
    intercept: bool
    one_predictor: bool

    def factors(self, theta: Array64) -> Array64:
        """The information factors ``(M, r, D)`` of the draws at ``theta``."""
        return self.model.information_factors(self.folded(None), theta).astype(np.float64)

    def folded(self, targets: Array64 | None) -> Array32:
        """The draws, folded with ``targets`` ``(M,)``; with None, with any."""
        y = np.ones(len(self.draws)) if targets is None else targets
        return self.model.fold(self.draws, y).astype(np.float32)

    def information(self, theta: Array64, weights: Array64 | float = 1.0) -> Array64:
        """The information ``(D, D)`` of all rows at ``theta``, each with a weight ``(M,)``; without the prior."""
        return self.gram(self.factors(theta), weights)

    def gram(self, factors: Array64, weights: Array64 | float = 1.0) -> Array64:
        """``count / M`` times the sum of ``w F'F`` over factors ``(M, r, D)``."""
        weighted = factors * np.broadcast_to(weights, len(factors))[:, None, None]
        size = factors.shape[2]
        total = weighted.reshape(-1, size).T @ factors.reshape(-1, size)
        return np.asarray(self.count / len(factors) * total)

    def path_factors(self, start: Array64, end: Array64) -> Array64:
        """Factors ``(M, r', D)`` whose gram is the secant of the mean score, from ``start`` to the truth at ``end``.

        It is the mean information on the way; with an unknown noise scale, that of coefficients is at the start, and
        the mean of ``e^2 - 1`` is an exponential function of the way.
        """
        if isinstance(self.model, UnboundedTargets) and self.model.squares:
            found, way = self.factors(start), float(np.clip(end[-1] - start[-1], -_MOST_WAY, _MOST_WAY))
            found[:, :, -1] *= np.sqrt(np.expm1(2 * way) / (2 * way)) if abs(way) > _LEAST_WAY else 1.0
            return found
        if not self.one_predictor:
            between = [
                np.sqrt(w) * self.factors(start + s * (end - start)) for s, w in zip(_NODES, _WEIGHTS, strict=True)
            ]
            return np.asarray(np.concatenate(between, axis=1), dtype=np.float64)
        first, last = self.draws @ start, self.draws @ end
        mean = sum(w * self.curvature(first + s * (last - first)) for s, w in zip(_NODES, _WEIGHTS, strict=True))
        return np.asarray((self.draws * np.sqrt(mean)[:, None])[:, None, :])

    def curvature(self, predictors: Array64) -> Array64:
        """The information ``(n,)`` of a row with each linear predictor; only with one predictor."""
        width = self.draws.shape[1]
        x = np.zeros((len(predictors), width))
        x[:, 0], x[:, -1] = predictors, 1.0
        first = np.zeros(self.model.dimension)
        first[0] = 1.0
        rows = self.model.fold(x, np.ones(len(x))).astype(np.float32)
        factors = self.model.information_factors(rows, first)[:, :, -1].astype(np.float64)
        return np.asarray(np.square(factors).sum(axis=1))

    def change(self, step: Array64) -> Array64:
        """How much linear predictors, or further parameters, change by ``step`` ``(D,)``: ``(M,)``, the largest."""
        width = self.draws.shape[1]
        blocks = step[: self.model.predictors * width].reshape(-1, width)
        own = float(np.max(np.abs(step[blocks.size :]), initial=0.0))
        return np.asarray(np.maximum(np.sqrt(np.square(self.draws @ blocks.T).mean(axis=1)), own))

    def with_moments(self, count: float, mean: Array64, covariance: Array64) -> "Rows":
        """The same draws, coloured anew: ``mean`` ``(k,)`` and ``covariance`` ``(k, k)``."""
        return replace(self, count=count, draws=colour(self.standard, mean, covariance, intercept=self.intercept))


def colour(standard: Array64, mean: Array64, covariance: Array64, *, intercept: bool) -> Array64:
    """Move standardised draws ``(M, k)`` as little as possible, so that they have these moments.

    The optimal linear transport between two normal laws (Dowson & Landau, *J. Multivariate Anal.* 12, 1982): draws
    that have the correlations already keep their marginal laws.
    """
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 1e-30))
    goal = symmetric(covariance / np.outer(deviation, deviation))
    root, inverse = _roots(symmetric(standard.T @ standard / len(standard)))
    middle, _ = _roots(symmetric(root @ goal @ root))
    moved = mean + (standard @ inverse @ middle @ inverse) * deviation
    return np.column_stack([moved, np.ones(len(moved))]) if intercept else moved


def _roots(matrix: Array64) -> tuple[Array64, Array64]:
    """The symmetric square root of a matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.sqrt(np.maximum(values, _LEAST_EIGENVALUE**2))
    return (vectors * values) @ vectors.T, (vectors / np.maximum(values, _LEAST_EIGENVALUE**0.5)) @ vectors.T
