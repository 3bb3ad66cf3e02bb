"""Bayesian Poisson regression with the log link, ``y ~ Poisson(exp(x'theta))``.

``f = y x'theta - exp(x'theta)``. The module :mod:`app.inference.models.counts` defines rows and the range of rates. The
log-likelihood of a null row is the constant -1.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Expansion, Model
from app.inference.core.plan import ModelSpec
from app.inference.models.bounded import SHRINK, bound_scores, compute_norms
from app.inference.models.counts import MOST_SAMPLED, Counts, clip_predictors
from app.inference.models.definition import Family
from app.inference.models.poisson_law import compute_clipped_mean
from app.inference.models.targets import read_bounds
from app.inference.private_zone.rowwise import zero_rows_unless

_LEAST_BOUND: Final = 1e-30


@dataclass(frozen=True, slots=True)
class PoissonRegression(Counts):
    """The model for a design of ``width`` columns and a target with declared bounds."""

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``y x'theta - exp(x'theta)``, shape ``(n, S)``."""
        predictor = clip_predictors(np.matmul(self.features(rows), draws.T, out=out))
        rate = np.exp(predictor)
        predictor *= rows[:, -1:]
        predictor -= rate
        return np.asarray(predictor)

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradients in ``u`` and ``y``.

        They are ``sum_s cotangent_s (y - exp(u'draws_s)) draws_s`` and ``sum_s cotangent_s u'draws_s``.
        """
        predictor = clip_predictors(u @ draws.T)
        return ((y[:, None] - np.exp(predictor)) * cotangent) @ draws, predictor @ cotangent

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        x, y = self.features(rows), rows[:, -1]
        predictor = clip_predictors(x @ theta)
        rate = np.exp(predictor)
        return Expansion(
            value=float(weights @ (y * predictor - rate)),
            gradient=x.T @ (weights * (y - rate)),
            information=x.T @ (x * (weights * rate)[:, None]),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``(y - rate) x``."""
        scores: Array32 = self.features(rows) * (rows[:, -1] - self._rates(rows, theta))[:, None]
        return scores

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip residuals to ``+-C / ||W x||``, subtract their exact mean, and weight."""
        rate = self._rates(rows, theta)
        directions = (transform.astype(np.float32) @ self.features(rows).T).T
        cut = np.maximum(np.float32(clip) * SHRINK / compute_norms(directions), np.float32(_LEAST_BOUND))
        mean = compute_clipped_mean(rate.astype(np.float64), cut.astype(np.float64)).astype(np.float32)
        residual = np.clip(rows[:, -1] - rate, -cut, cut) - mean
        zero_rows_unless(residual, np.isfinite(rows[:, -1]))
        return bound_scores(directions, residual, cut + np.abs(mean), clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(rate) x``, one factor for each row."""
        factors: Array32 = self.features(rows) * np.sqrt(self._rates(rows, theta))[:, None]
        return factors[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw counts, shape ``(n,)``; rates are clipped to e^40."""
        return rng.poisson(np.exp(np.minimum(x @ theta, MOST_SAMPLED))).astype(np.float64)


def _bind(_spec: ModelSpec, width: int, target: Column | None) -> Model:
    return PoissonRegression(width, *read_bounds(target))


FAMILY = Family(
    name="poisson-regression",
    description=(
        "Bayesian Poisson regression, with the log link, of an integer column. Its declared lower bound must be 0 or "
        "more."
    ),
    bind=_bind,
    targets=("integer",),
    least_target=0.0,
)
