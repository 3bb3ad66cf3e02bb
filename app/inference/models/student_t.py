"""Bayesian regression with Student-t noise: ``y = x'beta + sigma t_nu``.

The tails are the heavier, the smaller the declared degrees of freedom ``nu``: 1 is the Cauchy distribution, 100 is
nearly normal. The module :mod:`app.inference.models.location_scale` defines units, rows, the standardised residual
``e`` and the parameter ``rho`` of an unknown scale. Then

    ``f = -(nu + 1)/2 log(1 + e^2 / nu) - m rho``.

With the slope ``r = (nu + 1) e / (nu + e^2)``, the scores are ``r x / sigma`` and ``e r - m``. Both are bounded for
every target. A row's Fisher information is ``(nu + 1)/(nu + 3) x x' / sigma^2`` for ``beta`` and ``2 nu/(nu + 3)`` for
``rho``. Source: Lange, Little & Taylor, *JASA* 84, 1989.

The log-likelihood is not concave: rows with ``e^2 > nu`` have a negative curvature in ``beta``. So a posterior may have
several modes, and :meth:`StudentTRegression.expand` also gives a matrix that is never indefinite. For ``beta`` it is
that of iteratively reweighted least squares, whose full steps always climb. For ``rho`` it is the curvature, at least
the Fisher information.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Expansion, Model
from app.inference.core.plan import ModelSpec
from app.inference.models.bounded import bound_symmetric_scores
from app.inference.models.definition import Family
from app.inference.models.location_scale import REFERENCE, LocationScale, UnknownScale, read_noise
from app.inference.models.student_t_scores import bound_location_scale_scores

DEFAULT_DEGREES: Final = 4.0
_WIDEST: Final = 1e9
"""Widest scale of a score over the model's: its square is finite."""


@dataclass(frozen=True, slots=True)
class StudentTRegression(LocationScale):
    """The model with a known scale; ``noise`` is in half ranges of the target."""

    degrees_of_freedom: float

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the log-likelihood ``f`` of the module's docstring, shape ``(n, S)``."""
        rho, sigma = self.noise_at(draws)
        values = self.compute_errors(rows, draws, out)
        values /= sigma
        np.square(values, out=values)
        values *= 1 / self.degrees_of_freedom
        values += 1
        np.log(values, out=values)
        values *= -0.5 * (self.degrees_of_freedom + 1)
        if self.dimension > self.width:
            values -= rows[:, self.width - 1, None] * rho
        return values

    def _share(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute ``h = nu / (nu + e^2)``, same shape."""
        share: NDArray[Any] = np.square(e)
        share *= 1 / self.degrees_of_freedom
        share += 1
        np.reciprocal(share, out=share)
        return share

    def _slope(self, e: NDArray[Any]) -> NDArray[Any]:
        """Compute the slope ``r``, same shape."""
        slope = self._share(e)
        slope *= (self.degrees_of_freedom + 1) / self.degrees_of_freedom
        slope *= e
        return slope

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradients in ``u`` and ``y``.

        They are the sums over s of ``cotangent_s r_s / sigma_s``, times ``beta_s`` and times -1.
        """
        rho, sigma = self.noise_at(draws)
        slopes = self._slope(self.compute_errors(self.fold(u, y), draws, None) / sigma) * (cotangent / sigma)
        by_point = slopes @ draws[:, : self.width]
        by_point[:, -1] -= cotangent @ rho
        return by_point, -slopes.sum(axis=1)

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``.

        The information may be indefinite away from a mode; ``scoring`` never is.
        """
        nu, x = self.degrees_of_freedom, rows[:, : self.width]
        rho, sigma = self.noise_at(theta)
        e = (rows[:, -1] - x @ theta[: self.width]) / sigma
        share = self._share(e)
        pull = weights * share * ((nu + 1) / nu)
        value = 0.5 * (nu + 1) * float(weights @ np.log(share))
        gradient = x.T @ (pull * e) / sigma
        information = x.T @ (x * (pull * (2 * share - 1))[:, None]) / sigma**2
        scoring = x.T @ (x * pull[:, None]) / sigma**2
        if self.dimension == self.width:
            return Expansion(value, gradient, information, scoring)
        presence, rest = weights * x[:, -1], (nu + 1) * weights * (1 - share)
        across = x.T @ (2 * pull * share * e) / sigma
        of_scale = 2 * rest * share
        return Expansion(
            value=value - float(presence.sum() * rho),
            gradient=np.append(gradient, rest.sum() - presence.sum()),
            information=_border(information, across, of_scale.sum()),
            scoring=_border(scoring, np.zeros_like(across), np.maximum(of_scale, 2 * nu / (nu + 3) * presence).sum()),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``r x / sigma``."""
        e, sigma = self._standardise(rows, theta)
        slope = self._slope(e)
        slope /= sigma
        scores: Array32 = self.features(rows) * slope[:, None]
        return scores

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip the slopes symmetrically; under the model they are symmetric, so the scores are unbiased."""
        e, sigma = self._standardise(rows, theta)
        directions = self.features(rows) @ (transform.astype(np.float32) / sigma).T
        return bound_symmetric_scores(directions, self._slope(e), clip)

    @np.errstate(all="ignore")
    def cut_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float, cut: float) -> Array32:
        """Bound the scores of a wider scale, w times that of the model.

        They are ``(nu + 1) w^2 e / (nu w^2 + e^2) x / sigma``, so they grow up to ``e = w sqrt(nu)``. This is ``cut``,
        unless w is 1. Scores of an unknown scale are cut.
        """
        if self.squares:
            return LocationScale.cut_scores(self, rows, theta, transform, clip, cut)
        e, sigma = self._standardise(rows, theta)
        directions = self.features(rows) @ (transform.astype(np.float32) / sigma).T
        nu, square = self.degrees_of_freedom, np.square(np.clip(cut / np.sqrt(self.degrees_of_freedom), 1, _WIDEST))
        slope: Array32 = np.square(e)
        slope += np.float32(nu * square)
        np.divide(e, slope, out=slope)
        slope *= np.float32((nu + 1) * square)
        return bound_symmetric_scores(directions, slope, clip)

    @property
    def redescending(self) -> bool:
        """Whether scores of far residuals are small: yes."""
        return True

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt((nu + 1)/(nu + 3)) x / sigma``, one factor for each row."""
        root = np.sqrt((self.degrees_of_freedom + 1) / (self.degrees_of_freedom + 3))
        factors: Array32 = self.features(rows) * np.float32(root / float(self._standardise(rows[:0], theta)[1]))
        return factors[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw targets with Student-t noise, shape ``(n,)``."""
        noise = self.noise_at(theta)[1] * rng.standard_t(self.degrees_of_freedom, len(x))
        return np.asarray(x @ theta[: self.width] + noise)


@dataclass(frozen=True, slots=True)
class StudentTRegressionOfUnknownScale(UnknownScale, StudentTRegression):
    """The model with ``theta = (beta, rho)``; ``noise`` is ``sigma`` at ``rho = 0``."""

    @property
    def smallest_exact(self) -> int:
        """One more than the number of parameters, because the scale needs two outliers. Close, but rarely exact."""
        return self.dimension + 1

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``[r x / sigma, e r - m]``."""
        e, sigma = self._standardise(rows, theta)
        x, slope = self.features(rows), self._slope(e)
        scores = np.column_stack((x * (slope / sigma)[:, None], e * slope - x[:, -1]))
        return scores.astype(np.float32, copy=False)

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip ``e`` symmetrically, subtract exact means, and weight.

        Bound and weight depend on ``x`` alone.
        """
        e, sigma = self._standardise(rows, theta)
        x, metric = self.features(rows), transform.astype(np.float32)
        directions = x @ (metric[:, :-1] / sigma).T
        return bound_location_scale_scores(directions, metric[:, -1], e, x[:, -1], clip, self.degrees_of_freedom)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute two factors for each row, one for ``beta`` and one for ``rho``.

        They are ``[sqrt((nu + 1)/(nu + 3)) x / sigma, 0]`` and ``[0, sqrt(2 nu/(nu + 3)) m]``.
        """
        nu, x = self.degrees_of_freedom, self.features(rows)
        factors = np.zeros((len(rows), 2, self.dimension), dtype=np.float32)
        factors[:, 0, :-1] = x * np.float32(np.sqrt((nu + 1) / (nu + 3)) / self._standardise(rows[:0], theta)[1])
        factors[:, 1, -1] = x[:, -1] * np.float32(np.sqrt(2 * nu / (nu + 3)))
        return factors


def _border(matrix: Array64, across: Array64, corner: float) -> Array64:
    """Add a row and a column ``across`` ``(p,)`` with their ``corner``."""
    return np.block([[matrix, across[:, None]], [across[None, :], np.array([[corner]])]])


def _bind(spec: ModelSpec, width: int, target: Column | None) -> Model:
    noise = read_noise(spec, target)
    degrees = DEFAULT_DEGREES if spec.degrees_of_freedom is None else spec.degrees_of_freedom
    if noise is None:
        return StudentTRegressionOfUnknownScale(width, REFERENCE, degrees)
    return StudentTRegression(width, noise, degrees)


FAMILY = Family(
    name="student-t-regression",
    description=(
        "Bayesian linear regression of a real or integer column with Student-t noise, whose heavy tails give outliers "
        "little weight. The target is scaled by its bounds to -1 and 1. degrees_of_freedom are 1 to 100 (default 4). "
        "noise_scale is the scale of the noise in units of the target. Without it, the scale is unknown, and "
        "log_noise_scale is a parameter."
    ),
    bind=_bind,
    targets=("real", "integer"),
    noise_scale=True,
    degrees_of_freedom=DEFAULT_DEGREES,
    scales_target=True,
)
