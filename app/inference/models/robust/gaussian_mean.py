"""The beta-likelihood of a Gaussian mean: ``f = (exp(-beta d / 2) - 1) / beta`` with ``d = |x - m theta|^2 / s^2``.

The score is the model's, times ``exp(-beta d / 2)``. The integral of ``p^(1 + beta)`` does not depend on the parameter.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.gaussian import GaussianMean
from app.inference.models.robust.decorator import Robust
from app.inference.private_zone.rowwise import zero_rows_unless

_LEAST_LOG: Final = -60.0
"""Least logarithm of a weight; so no product with a score is subnormal."""


@dataclass(frozen=True, slots=True)
class RobustGaussianMean(Robust[GaussianMean]):
    """A Gaussian mean with a beta-likelihood."""

    def _log_weights(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``-beta d / 2``, ``(n, S)``, about the draws' mean to keep precision."""
        centre = draws.mean(axis=0)
        x = self.model.features(rows) - rows[:, -1:] * centre
        moved = draws - centre
        values: NDArray[Any] = np.matmul(x, -2 * moved.T, out=out)
        values += np.vecdot(x, x)[:, None]
        values += rows[:, -1:] * np.vecdot(moved, moved)
        values *= -0.5 * self.beta / self.model.noise**2
        return np.clip(values, _LEAST_LOG, 0, out=values)

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the potentials ``(n, S)``."""
        values = self._log_weights(rows, draws, out)
        np.exp(values, out=values)
        values -= 1
        values *= 1 / self.beta
        return values

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``sum_s cotangent_s exp(-beta d_s / 2) (draws_s - u) / s^2``; there is no target."""
        shares = np.exp(self._log_weights(self.model.fold(u, y), draws)) * cotangent
        return (shares @ draws - shares.sum(axis=1)[:, None] * u) / self.model.noise**2, None

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand to second order at ``theta``; ``scoring`` is that of a quadratic lower bound."""
        x, precision = self.model.features(rows) - rows[:, -1:] * theta, self.model.noise**-2
        height = np.exp(-0.5 * self.beta * precision * np.vecdot(x, x))
        pull = weights * height
        scoring = np.eye(self.model.width) * (float(pull @ rows[:, -1]) * precision)
        return Expansion(
            value=float(weights @ (height - 1)) / self.beta,
            gradient=precision * (pull @ x),
            information=scoring - self.beta * precision**2 * x.T @ (x * pull[:, None]),
            scoring=scoring,
        )

    def _row_weights(self, rows: Array32, theta: Array64) -> Array32:
        weights: Array32 = np.exp(self._log_weights(rows, theta.astype(np.float32)[None, :])[:, 0])
        return weights

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``exp(-beta d / 2)`` times the model's scores."""
        return self.model.scores(rows, theta) * self._row_weights(rows, theta)[:, None]

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Compute ``exp(-beta d / 2)`` times the model's bounded scores; both are symmetric under the model."""
        weight = self._row_weights(rows, theta)
        scores = self.model.bounded_scores(rows, theta, transform, clip) * weight[:, None]
        zero_rows_unless(scores, np.isfinite(weight))
        return scores

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``(1 + beta)^(-p/4 - 1/2)`` times the model's factors: the expected information."""
        share = np.float32((1 + self.beta) ** (-0.25 * self.model.width - 0.5))
        factors = self.model.information_factors(rows, theta)
        factors *= share
        return factors
