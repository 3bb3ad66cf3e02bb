"""Bayesian negative binomial regression with the log link: counts that vary more than Poisson counts.

The mean is ``mu = exp(x'beta)``, the variance ``mu + alpha mu^2`` with the dispersion ``alpha`` (the form NB2). The
module :mod:`app.inference.models.counts` defines rows and the range of means. With ``k = 1 / alpha``,

    ``f = y log(mu) - (y + k) log(1 + alpha mu)``, with the score ``(y - mu) / (1 + alpha mu) x``.

A row's Fisher information is ``mu / (1 + alpha mu) x x'``. The log-likelihood of a null row is a constant. Source:
Hilbe, *Negative Binomial Regression*, 2nd ed., 2011.
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
from app.inference.models.stein import bound_residuals, choose_length
from app.inference.models.targets import read_bounds
from app.inference.private_zone.rowwise import zero_rows_unless

DEFAULT_DISPERSION: Final = 1.0


@dataclass(frozen=True, slots=True)
class NegativeBinomialRegression(Counts):
    """The model with a known ``dispersion``."""

    dispersion: float

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``f``, shape ``(n, S)``.

        It is ``-(y + k) L - k log(mu)`` with ``L = log(alpha + 1 / mu)``, which cancels least for large means.
        """
        predictor = clip_predictors(np.matmul(self.features(rows), draws.T, out=out))
        ratio, size = self._log_ratio(predictor), 1 / self.dispersion
        predictor += ratio
        predictor *= -size
        ratio *= rows[:, -1:]
        predictor -= ratio
        return predictor

    def _log_ratio(self, predictor: NDArray[Any]) -> NDArray[Any]:
        """Compute ``L = log(alpha + 1 / mu)``, same shape."""
        ratio: NDArray[Any] = np.negative(predictor)
        np.exp(ratio, out=ratio)
        ratio += self.dispersion
        np.log(ratio, out=ratio)
        return ratio

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradients in ``u`` and ``y``.

        They are ``sum_s cotangent_s (y - mu_s) / (1 + alpha mu_s) draws_s`` and ``-sum_s cotangent_s L_s``.
        """
        predictor = clip_predictors(u @ draws.T)
        mean = np.exp(predictor)
        residual = (y[:, None] - mean) / (1 + self.dispersion * mean)
        return (residual * cotangent) @ draws, -self._log_ratio(predictor) @ cotangent

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        x, y = self.features(rows), rows[:, -1]
        predictor = clip_predictors(x @ theta)
        mean, ratio = np.exp(predictor), self._log_ratio(predictor)
        rest, size = 1 + self.dispersion * mean, 1 / self.dispersion
        curvature = mean / rest * ((1 + self.dispersion * y) / rest)
        return Expansion(
            value=-float(weights @ (y * ratio + size * (ratio + predictor))),
            gradient=x.T @ (weights * ((y - mean) / rest)),
            information=x.T @ (x * (weights * curvature)[:, None]),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``(y - mu) / (1 + alpha mu) x``."""
        mean = self._rates(rows, theta)
        scores: Array32 = (
            self.features(rows) * ((rows[:, -1] - mean) / (1 + np.float32(self.dispersion) * mean))[:, None]
        )
        return scores

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Bound scores by weights.

        Residuals are bounded first, to about ``+-C / ||W x||``, by Stein's identity. The weights use their exact bound.
        """
        mean = self._rates(rows, theta).astype(np.float64)
        directions = (transform.astype(np.float32) @ self.features(rows).T).T
        cut = np.float32(clip) * SHRINK / compute_norms(directions)
        length, bound = choose_length(mean, self.dispersion, cut.astype(np.float64))
        residual = bound_residuals(rows[:, -1].astype(np.float64), mean, self.dispersion, length).astype(np.float32)
        zero_rows_unless(residual, np.isfinite(rows[:, -1]))
        return bound_scores(directions, residual, bound.astype(np.float32), clip)

    def _compute_variance_ratio(self, mean: Array32) -> Array32:
        """Compute ``1 + alpha mu``."""
        return 1 + np.float32(self.dispersion) * mean

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(mu / (1 + alpha mu)) x``, one factor for each row."""
        mean = self._rates(rows, theta)
        factors: Array32 = self.features(rows) * np.sqrt(mean / (1 + np.float32(self.dispersion) * mean))[:, None]
        return factors[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw counts as Poisson counts of gamma means, shape ``(n,)``; means are clipped to e^40."""
        size = 1 / self.dispersion
        means = np.exp(np.minimum(x @ theta, MOST_SAMPLED)) * rng.gamma(size, self.dispersion, len(x))
        return rng.poisson(np.minimum(means, np.exp(MOST_SAMPLED))).astype(np.float64)


def _bind(spec: ModelSpec, width: int, target: Column | None) -> Model:
    dispersion = DEFAULT_DISPERSION if spec.dispersion is None else spec.dispersion
    return NegativeBinomialRegression(width, *read_bounds(target), dispersion)


FAMILY = Family(
    name="negative-binomial-regression",
    description=(
        "Bayesian negative binomial regression, with the log link, of an integer column. Its declared lower bound must "
        "be 0 or more. Counts of mean m have the variance m + dispersion m^2; dispersion is 0.001 to 1000 (default 1)."
    ),
    bind=_bind,
    targets=("integer",),
    least_target=0.0,
    dispersion=DEFAULT_DISPERSION,
)
