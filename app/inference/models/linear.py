"""Bayesian linear regression: ``y ~ N(x'beta, sigma^2)``.

The module :mod:`app.inference.models.location_scale` defines units, rows, the standardised residual ``e`` and the
parameter ``rho`` of unknown noise. Then

    ``f = -e^2/2 - m rho``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Expansion, Model
from app.inference.core.plan import ModelSpec
from app.inference.models.bounded import bound_quadratic_scores, bound_symmetric_scores
from app.inference.models.definition import Family
from app.inference.models.location_scale import REFERENCE, LocationScale, UnknownScale, read_noise


@dataclass(frozen=True, slots=True)
class LinearRegression(LocationScale):
    """Linear regression with known noise; ``noise`` is in half ranges of the target."""

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``-(y - x'beta)^2 / (2 sigma^2) - m rho``, shape ``(n, S)``."""
        rho, sigma = self.noise_at(draws)
        values = self.compute_errors(rows, draws, out)
        values /= sigma
        np.square(values, out=values)
        values *= -0.5
        if self.dimension > self.width:
            values -= rows[:, self.width - 1, None] * rho
        return values

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradients in ``u`` and ``y``.

        They are the sums over s of ``cotangent_s (y - u'beta_s) / sigma_s^2``, times ``beta_s`` and times -1.
        """
        rho, sigma = self.noise_at(draws)
        scaled_residuals = self.compute_errors(self.fold(u, y), draws, None) * (cotangent / sigma**2)
        by_point = scaled_residuals @ draws[:, : self.width]
        by_point[:, -1] -= cotangent @ rho
        return by_point, -scaled_residuals.sum(axis=1)

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        x, beta = rows[:, : self.width], theta[: self.width]
        rho, sigma = self.noise_at(theta)
        e = (rows[:, -1] - x @ beta) / sigma
        value, gradient = -0.5 * weights @ np.square(e), x.T @ (weights * e) / sigma
        information = x.T @ (x * weights[:, None]) / sigma**2
        if self.dimension == self.width:
            return Expansion(float(value), gradient, information)
        presence, across = weights * x[:, -1], 2 * gradient
        of_noise = float(weights @ np.square(e))
        return Expansion(
            value=float(value - presence.sum() * rho),
            gradient=np.append(gradient, of_noise - presence.sum()),
            information=np.block([[information, across[:, None]], [across[None, :], np.array([[2 * of_noise]])]]),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``e x / sigma``."""
        e, sigma = self._standardise(rows, theta)
        scores: Array32 = self.features(rows) * (e / sigma)[:, None]
        return scores

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip residuals symmetrically; under the model they are symmetric, so the scores are unbiased."""
        e, sigma = self._standardise(rows, theta)
        return bound_symmetric_scores(self.features(rows) @ (transform.astype(np.float32) / sigma).T, e, clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``x / sigma``, one factor for each row."""
        factors = self.features(rows) / self._standardise(rows[:0], theta)[1]
        return factors.astype(np.float32, copy=False)[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw normal targets, shape ``(n,)``."""
        return np.asarray(x @ theta[: self.width] + self.noise_at(theta)[1] * rng.standard_normal(len(x)))


@dataclass(frozen=True, slots=True)
class LinearRegressionOfUnknownNoise(UnknownScale, LinearRegression):
    """Linear regression with ``theta = (beta, rho)``; ``noise`` is ``sigma`` at ``rho = 0``."""

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``[e x / sigma, e^2 - m]``."""
        e, sigma = self._standardise(rows, theta)
        x = self.features(rows)
        scores = np.column_stack((x * (e / sigma)[:, None], np.square(e) - x[:, -1]))
        return scores.astype(np.float32, copy=False)

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip ``e`` symmetrically, subtract exact means, and weight.

        Bound and weight depend on ``x`` alone.
        """
        e, sigma = self._standardise(rows, theta)
        x, metric = self.features(rows), transform.astype(np.float32)
        return bound_quadratic_scores(x @ (metric[:, :-1] / sigma).T, metric[:, -1], e, x[:, -1], clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``[x / sigma, 0]`` and ``[0, sqrt(2) m]``, two factors for each row."""
        factors = np.zeros((len(rows), 2, self.dimension), dtype=np.float32)
        x = self.features(rows)
        factors[:, 0, :-1] = x / self._standardise(rows[:0], theta)[1]
        factors[:, 1, -1] = x[:, -1] * np.float32(np.sqrt(2))
        return factors


def _bind(spec: ModelSpec, width: int, target: Column | None) -> Model:
    noise = read_noise(spec, target)
    return LinearRegressionOfUnknownNoise(width, REFERENCE) if noise is None else LinearRegression(width, noise)


FAMILY = Family(
    name="linear-regression",
    description=(
        "Bayesian linear regression of a real or integer column. The target is scaled by its bounds to -1 and 1. "
        "noise_scale is the standard deviation of the noise in units of the target. Without it, the noise is unknown, "
        "and log_noise_scale is a parameter."
    ),
    bind=_bind,
    targets=("real", "integer"),
    noise_scale=True,
    scales_target=True,
)
