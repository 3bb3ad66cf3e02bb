"""The beta-likelihood of classes: ``f = (p_y^beta - 1) / beta - (sum_k p_k^(1 + beta) - 1) / (1 + beta)``.

With ``T = sum_k p_k^(1 + beta)``, the derivative in the linear predictor of class k is

    ``g_k = p_y^beta (1{k = y} - p_k) - p_k^(1 + beta) + T p_k``.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.bounded import ACTIVATION, SHRINK, compute_norms
from app.inference.models.multinomial import MultinomialLogistic
from app.inference.models.robust.decorator import Robust
from app.inference.private_zone.rowwise import zero_rows_unless

_BOUNDS: Final[dict[type, float]] = {np.float32: 80.0, np.float64: 350.0}
"""Largest activation in each precision; larger ones are clipped."""
_MOST_EXPONENT: Final = 80.0
_ACTIVATION: Final = ACTIVATION / 4
"""Largest activation in scores; then powers of probabilities up to the third are normal numbers."""


@dataclass(frozen=True, slots=True)
class RobustMultinomial(Robust[MultinomialLogistic]):
    """Multinomial logistic regression with a beta-likelihood."""

    def _log_probabilities(self, x: NDArray[Any], draws: NDArray[Any], bound: float) -> NDArray[Any]:
        """Compute ``log p_k``, ``(K, n, S)``."""
        width, classes = self.model.width, len(self.model.classes)
        values = np.zeros((classes, len(x), len(draws)), dtype=x.dtype)
        for k in range(1, classes):
            np.matmul(x, draws[:, (k - 1) * width : k * width].T, out=values[k])
        np.clip(values, -bound, bound, out=values)
        values -= np.log(np.exp(values).sum(axis=0))
        return values

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Encode classes as indicators ``(K, n)`` of all classes."""
        chosen: NDArray[Any] = y == np.arange(len(self.model.classes))[:, None]
        return chosen.astype(y.dtype)

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the potentials ``(n, S)``."""
        values = self._log_probabilities(self.model.features(rows), draws, _BOUNDS[rows.dtype.type])
        own = np.empty(values.shape[1:], dtype=rows.dtype) if out is None else out
        np.einsum("kn,kns->ns", self._encode(rows[:, -1]), values, out=own)
        own *= self.beta
        np.maximum(own, -_MOST_EXPONENT, out=own)
        np.exp(own, out=own)
        own -= 1
        own *= 1 / self.beta
        values *= 1 + self.beta
        np.maximum(values, -_MOST_EXPONENT, out=values)
        rest = np.exp(values, out=values).sum(axis=0)
        rest -= 1
        rest *= 1 / (1 + self.beta)
        own -= rest
        return own

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradient in the points; classes stay fixed."""
        slopes = self._slopes(self._encode(y)[:, :, None], self._log_probabilities(u, draws, _BOUNDS[u.dtype.type]))
        slopes *= cotangent
        by_class = draws.reshape(len(draws), self.predictors, self.model.width)
        return np.einsum("kns,skp->np", slopes[1:], by_class), None

    def _slopes(self, chosen: NDArray[Any], log_p: NDArray[Any]) -> NDArray[Any]:
        """Compute ``g_k`` of all classes.

        Indicators and log-probabilities are ``(K, …)``, and so is the result.
        """
        p, power = np.exp(log_p), np.exp((1 + self.beta) * log_p)
        height = np.exp(self.beta * (chosen * log_p).sum(axis=0))
        slopes: NDArray[Any] = height * (chosen - p) - power + power.sum(axis=0) * p
        return slopes

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand to second order at ``theta``; ``scoring`` is the expected information."""
        beta, x, chosen = self.beta, self.model.features(rows), self._encode(rows[:, -1])
        log_p = self._log_probabilities(x, theta[None, :], _BOUNDS[np.float64])[:, :, 0]
        p, power = np.exp(log_p), np.exp((1 + beta) * log_p)
        height, total = np.exp(beta * (chosen * log_p).sum(axis=0)), power.sum(axis=0)
        residual, unit = chosen - p, np.eye(len(p))[:, :, None]
        spread = unit - p  # (k, l): the derivative of log p_k in the predictor of l
        expected = np.einsum("jn,jkn,jln->kln", power, spread, spread)
        mixed = (1 + beta) * (power[:, None] * spread - p[:, None] * (power - total * p))
        curvature = (height - total) * p[:, None] * spread + mixed - beta * height * residual[:, None] * residual
        return Expansion(
            value=float(weights @ (np.expm1(beta * (chosen * log_p).sum(axis=0)) / beta - (total - 1) / (1 + beta))),
            gradient=((weights * self._slopes(chosen, log_p))[1:] @ x).ravel(),
            information=self._assemble(x, weights * curvature),
            scoring=self._assemble(x, weights * expected),
        )

    def _assemble(self, x: Array64, blocks: Array64) -> Array64:
        """Sum ``blocks_kl x x'`` over rows for all classes except the first, ``(D, D)``."""
        matrix = np.empty((self.predictors, self.model.width, self.predictors, self.model.width))
        for j in range(self.predictors):
            for k in range(self.predictors):
                matrix[j, :, k, :] = x.T @ (x * blocks[j + 1, k + 1, :, None])
        return matrix.reshape(self.dimension, self.dimension)

    def _row_log_probabilities(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``log p_k`` ``(K, n)`` at one parameter. Row zone."""
        single = theta.astype(np.float32)[None, :]
        return self._log_probabilities(self.model.features(rows), single, _ACTIVATION)[:, :, 0]

    def _blocks(self, slopes: Array32, x: Array32) -> Array32:
        """Compute ``slopes_k x`` for all classes except the first, ``(n, D)``."""
        return (slopes[1:].T[:, :, None] * x[:, None, :]).reshape(len(x), self.dimension)

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``g_k x``, class by class."""
        slopes = self._slopes(self._encode(rows[:, -1]), self._row_log_probabilities(rows, theta))
        return self._blocks(slopes, self.model.features(rows))

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Weight scores by ``min(1, C / max_k ||W score_k||)``, as the model does."""
        x, metric = self.model.features(rows), transform.astype(np.float32)
        log_p, chosen = self._row_log_probabilities(rows, theta), self._encode(rows[:, -1])
        directions = np.zeros((len(rows), len(metric)), dtype=np.float32)
        most = np.zeros(len(rows), dtype=np.float32)
        for k in range(len(self.model.classes)):
            outcome = np.zeros_like(chosen)
            outcome[k] = 1
            score = self._blocks(self._slopes(outcome, log_p), x) @ metric.T
            np.maximum(most, compute_norms(score), out=most)
            directions += chosen[k, :, None] * score
        weight = np.minimum(1, np.float32(clip) * SHRINK / most)
        directions *= weight[:, None]
        zero_rows_unless(directions, np.isfinite(weight * most + rows[:, -1]))
        return directions

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``p_j^((1 + beta)/2) (1_j - p) x`` for each class j."""
        x, log_p = self.model.features(rows), self._row_log_probabilities(rows, theta)
        spread = np.eye(len(log_p), dtype=np.float32)[:, :, None] - np.exp(log_p)
        spread *= np.exp(np.float32(0.5 * (1 + self.beta)) * log_p)[:, None]
        factors: Array32 = spread[:, 1:].transpose(2, 0, 1)[..., None] * x[:, None, None, :]
        return factors.reshape(len(x), len(log_p), self.dimension)
