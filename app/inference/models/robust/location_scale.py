"""Beta-likelihoods of numeric targets with normal or Student-t noise.

The density of a standardised residual ``e`` relative to its largest value is the height ``h(e)``, with ``r = -(log
h)'``. The scale ``sigma`` has the factor ``k = exp(-beta rho)``, which is 1 for known noise. With ``J = E[h^beta]``,

    ``f = k (h^beta - 1) / beta + m (k - 1) (1 / beta - J / (1 + beta))``.

The scores are ``k h^beta r x / sigma``, and ``k (h^beta (e r - 1) + J beta / (1 + beta))`` of ``rho``. Both are bounded
for every target, up to the factor ``k``.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.bounded import SHRINK, add_scores, compute_norms
from app.inference.models.linear import LinearRegression
from app.inference.models.robust.decorator import Robust
from app.inference.models.student_t import StudentTRegression
from app.inference.private_zone.rowwise import zero_rows_unless

_LEAST_LOG: Final = -40.0
"""Least logarithm of a height's power; so no product with a score is subnormal."""


class Shape(Protocol):
    """The distribution of standardised residuals ``e``."""

    def log_height(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``log h(e)``, in place."""

    def slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``r(e)``."""

    def slope_slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``dr/de``."""

    def stiffness(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``r(e) / e``, which is positive."""

    def moments(self, beta: float) -> tuple[float, float, float]:
        """Compute ``E[h^beta]``, ``E[h^beta r^2]`` and ``E[h^beta (e r - 1)^2]``."""

    def bounds(self, beta: float) -> tuple[float, float]:
        """Compute the largest values of ``h^beta r`` and of ``h^beta (e r - 1)``; the latter is at least -1."""

    def reach(self, beta: float) -> float:
        """Give the residual beyond which ``h^beta`` is not computed."""


class NormalShape:
    """Normal noise."""

    def log_height(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``-e^2 / 2``."""
        np.square(e, out=e)
        e *= -0.5
        return e

    def slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Return ``e``."""
        return e

    def slope_slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Return ones."""
        return np.ones_like(e)

    def stiffness(self, e: NDArray[Any]) -> NDArray[Any]:
        """Return ones."""
        return np.ones_like(e)

    def moments(self, beta: float) -> tuple[float, float, float]:
        """Compute moments of a normal variable, of variance ``1 / (1 + beta)``."""
        variance = 1 / (1 + beta)
        height = math.sqrt(variance)
        return height, height * variance, height * (3 * variance**2 - 2 * variance + 1)

    def bounds(self, beta: float) -> tuple[float, float]:
        """Compute the maxima; ``e^2`` is ``1 / beta`` or ``1 + 2 / beta`` there."""
        return math.exp(-0.5) / math.sqrt(beta), 2 / beta * math.exp(-0.5 * beta - 1)

    def reach(self, beta: float) -> float:
        """Solve ``beta e^2 / 2 = 40``."""
        return math.sqrt(-2 * _LEAST_LOG / beta)


@dataclass(frozen=True, slots=True)
class StudentShape:
    """Student-t noise; ``share`` is ``nu / (nu + e^2)``, which has the distribution Beta(nu/2, 1/2)."""

    nu: float

    def log_height(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``(nu + 1)/2 log share``."""
        np.square(e, out=e)
        e *= 1 / self.nu
        e += 1
        np.log(e, out=e)
        e *= -0.5 * (self.nu + 1)
        return e

    def _share(self, e: NDArray[Any]) -> NDArray[Any]:
        share: NDArray[Any] = 1 / (1 + np.square(e) * (1 / self.nu))
        return share

    def slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``(nu + 1) e / (nu + e^2)``."""
        return np.asarray(self.stiffness(e) * e)

    def slope_slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute the derivative of the slope."""
        share = self._share(e)
        return np.asarray((self.nu + 1) / self.nu * share * (2 * share - 1))

    def stiffness(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``(nu + 1) / (nu + e^2)``."""
        return np.asarray(self._share(e) * ((self.nu + 1) / self.nu))

    def moments(self, beta: float) -> tuple[float, float, float]:
        """Compute moments of powers of the share, by beta functions."""
        nu, a = self.nu, 0.5 * self.nu + 0.5 * beta * (self.nu + 1)

        def ratio(first: float, second: float) -> float:
            return float(scipy.special.beta(first, second) / scipy.special.beta(0.5 * nu, 0.5))

        height, more = ratio(a, 0.5), nu + 1
        of_scale = more**2 * ratio(a, 2.5) - 2 * more * ratio(a, 1.5) + height
        return height, more**2 / nu * ratio(a + 1, 1.5), of_scale

    def bounds(self, beta: float) -> tuple[float, float]:
        """Compute the maxima over the share."""
        nu, a = self.nu, 0.5 * beta * (self.nu + 1)
        steepest, furthest = (2 * a + 1) / (2 * a + 2), a * nu / ((a + 1) * (nu + 1))
        slope = (nu + 1) / math.sqrt(nu) * math.sqrt(steepest ** (2 * a + 1) * (1 - steepest))
        return slope, furthest**a * nu / (a + 1)

    def reach(self, beta: float) -> float:
        """Give a residual whose square is finite in single precision; ``e r`` is bounded."""
        return 1e18


@dataclass(frozen=True, slots=True)
class RobustLocationScale(Robust[LinearRegression | StudentTRegression]):
    """Linear or Student-t regression with a beta-likelihood, of known or unknown scale."""

    @property
    def potential_range(self) -> float | None:
        """``1 / beta`` for a known scale; the density of an unknown one has no bound."""
        return None if self._has_scale else 1 / self.beta

    @property
    def _has_scale(self) -> bool:
        return self.dimension > self.model.width

    @property
    def _shape(self) -> Shape:
        model = self.model
        return StudentShape(model.degrees_of_freedom) if isinstance(model, StudentTRegression) else NormalShape()

    @property
    def _loss(self) -> float:
        """``beta J / (1 + beta)``: the mean of ``-h^beta (e r - 1)``."""
        return self.beta / (1 + self.beta) * self._shape.moments(self.beta)[0]

    def _factor(self, rho: NDArray[Any]) -> NDArray[Any]:
        factor: NDArray[Any] = np.exp(-self.beta * rho)
        return factor

    def _power(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``h^beta``, overwriting ``e``."""
        values = self._shape.log_height(e)
        values *= self.beta
        np.maximum(values, _LEAST_LOG, out=values)
        return np.asarray(np.exp(values, out=values))

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the potentials ``(n, S)``."""
        rho, sigma = self.model.noise_at(draws)
        values = self.model.compute_errors(rows, draws, out)
        values /= sigma
        values = self._power(values)
        values -= 1
        values *= self._factor(rho) * (1 / self.beta)
        if self._has_scale:
            values += rows[:, self.model.width - 1, None] * self._constant(rho)
        return values

    def _constant(self, rho: NDArray[Any]) -> NDArray[Any]:
        """Compute the part of ``f`` that the presence multiplies."""
        return np.asarray((self._factor(rho) - 1) * ((1 - self._loss) / self.beta))

    @np.errstate(over="ignore")
    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradients in ``u`` and ``y``.

        They are the sums over s of ``cotangent_s k_s h^beta r / sigma_s``, times ``beta_s`` and times -1.
        """
        rho, sigma = self.model.noise_at(draws)
        e = self.model.compute_errors(self.fold(u, y), draws, None) / sigma
        slopes = self._shape.slope(e) * self._power(e.copy()) * (cotangent * self._factor(rho) / sigma)
        by_point = slopes @ draws[:, : self.model.width]
        if self._has_scale:
            by_point[:, -1] += cotangent @ self._constant(rho)
        return by_point, -slopes.sum(axis=1)

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand to second order at ``theta``; ``scoring`` has the weights of iterated least squares."""
        beta, x, shape = self.beta, self.model.features(rows), self._shape
        rho, sigma = self.model.noise_at(theta[None, :])
        e = self.model.compute_errors(rows, theta[None, :], None)[:, 0] / sigma[0]
        power, factor = np.exp(beta * shape.log_height(e.copy())), float(self._factor(rho)[0])
        pull, mass = power * shape.slope(e), factor * weights
        bend = power * shape.slope_slope(e) - beta * pull * shape.slope(e)
        value = float(mass @ (power - 1)) / beta
        x = x / sigma[0]
        gradient, information = x.T @ (mass * pull), x.T @ (x * (mass * bend)[:, None])
        scoring = x.T @ (x * (mass * power * shape.stiffness(e))[:, None])
        if not self._has_scale:
            return Expansion(value, gradient, information, scoring)
        presence, rest = weights * rows[:, self.model.width - 1], factor * (1 - self._loss)
        across = x.T @ (mass * ((1 + beta) * pull + e * bend))
        of_scale = mass * ((1 + 2 * beta) * e * pull + e**2 * bend - beta * (power - 1)) - presence * beta * rest
        expected = factor * shape.moments(beta)[2] * presence
        return Expansion(
            value=value + float(presence.sum() * self._constant(rho)[0]),
            gradient=np.append(gradient, mass @ (e * pull - power + 1) - presence.sum() * rest),
            information=_border(information, across, float(of_scale.sum())),
            scoring=_border(scoring, np.zeros_like(across), float(np.maximum(of_scale, expected).sum())),
        )

    def _at(self, rows: Array32, theta: Array64) -> tuple[Array32, Array32, np.float32, np.float32]:
        """Compute ``e`` and ``h^beta`` ``(n,)``, ``k`` and ``sigma``. Row zone."""
        single = theta.astype(np.float32)[None, :]
        rho, sigma = self.model.noise_at(single)
        e = self.model.compute_errors(rows, single, None)[:, 0] / sigma[0]
        return e, self._power(e.copy()), np.float32(self._factor(rho)[0]), np.float32(sigma[0])

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``k h^beta`` times the model's scores, and a constant for the scale."""
        _, power, factor, _ = self._at(rows, theta)
        scores = self.model.scores(rows, theta) * (factor * power)[:, None]
        if self._has_scale:
            scores[:, -1] += rows[:, self.model.width - 1] * (factor * np.float32(self._loss))
        return scores

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Weight scores by ``h^beta`` and a bound.

        With a known scale, the model's bounded scores are symmetric, and so is the weight. Otherwise the weight that
        bounds the norm depends on the design row alone.
        """
        e, power, factor, sigma = self._at(rows, theta)
        if not self._has_scale:
            scores = self.model.bounded_scores(rows, theta, transform, clip) * power[:, None]
            zero_rows_unless(scores, np.isfinite(power))
            return scores
        x, metric, shape = self.model.features(rows), transform.astype(np.float32), self._shape
        directions, constant = x @ (metric[:, :-1] / sigma).T, metric[:, -1]
        norm, own = compute_norms(directions), compute_norms(constant[None, :])[0]
        steepest, furthest = shape.bounds(self.beta)
        most = factor * (np.float32(steepest) * norm + np.float32(max(furthest + self._loss, 1)) * own)
        weight = np.minimum(1, np.float32(clip) * SHRINK / most) * factor
        near = np.clip(e, -shape.reach(self.beta), shape.reach(self.beta))
        slope = shape.slope(near)
        squares = power * (near * slope - 1) + np.float32(self._loss)
        return add_scores(directions, constant, weight * power * slope, weight * squares, x[:, -1], norm + np.abs(e))

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute the roots of the expected information: one factor for the location, and one for the scale."""
        _, _, factor, sigma = self._at(rows[:0], theta)
        _, of_location, of_scale = self._shape.moments(self.beta)
        x, width = self.model.features(rows), self.model.width
        factors = np.zeros((len(rows), 1 + int(self._has_scale), self.dimension), dtype=np.float32)
        factors[:, 0, :width] = x * (np.sqrt(factor * np.float32(of_location)) / sigma)
        if self._has_scale:
            factors[:, 1, -1] = x[:, -1] * np.sqrt(factor * np.float32(of_scale))
        return factors


def _border(matrix: Array64, across: Array64, corner: float) -> Array64:
    """Add a row and a column ``across`` ``(p,)`` with their ``corner``."""
    return np.block([[matrix, across[:, None]], [across[None, :], np.array([[corner]])]])
