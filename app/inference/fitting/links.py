"""Links: potentials and their derivatives along the linear predictor, for models with one.

With the predictor ``a = x'theta`` of a row, ``slope`` is ``r = df/da``, ``curvature`` is ``v = -d2f/da2`` (positive),
and ``curvature_slope`` is ``dv/da``. With a real target, a point can have any score at any location, within the range
of :meth:`Link.targets`.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import scipy

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.shapes import ShapeDerivatives, StudentShape
from app.inference.models.linear import LinearRegression, LinearRegressionOfUnknownNoise
from app.inference.models.location_scale import UnknownScale
from app.inference.models.logistic import LogisticRegression
from app.inference.models.multinomial import MultinomialLogistic
from app.inference.models.negative_binomial import NegativeBinomialRegression
from app.inference.models.poisson import PoissonRegression
from app.inference.models.probit import ProbitRegression
from app.inference.models.student_t import StudentTRegression, StudentTRegressionOfUnknownScale

_LARGEST_EXPONENT = 300.0
MOST_LOG_NOISE = 100.0
_LEAST_REST = 0.05
"""Least share of the largest ratio of a negative binomial score and curvature that is left out."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Derivatives of potentials in their linear predictor, each ``(M,)``."""

    slope: Array64
    curvature: Array64
    curvature_slope: Array64


class Link(Protocol):
    """A family's potentials as functions of the linear predictor and the target."""

    labels: ClassVar[bool]  # whether targets are 0 and 1; they then stay fixed
    target_bounds: ClassVar[tuple[float | None, float | None] | None]  # of continuous targets

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at predictors ``a`` and targets ``y``, both ``(M,)``."""

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Compute ``dr/dy``, ``(M,)``; zero for labels."""

    def curvature_in_target(self, a: Array64, y: Array64) -> Array64:
        """Compute ``dv/dy``, ``(M,)``; zero if the curvature does not depend on a continuous target."""

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Find the targets ``(M,)`` with ``r / v`` nearest to ``ratio``; for labels, 1 if it is positive."""

    def required_squares(self, mass: float) -> float | None:
        """Give the required ``sum w r^2 / v``; None if any value is allowed.

        ``mass`` is ``sum w v``.
        """


class _SameCurvature:
    """Common part of links whose curvature does not change with a continuous target."""

    def curvature_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return zeros."""
        return np.zeros_like(a)


class _Labels(_SameCurvature):
    """Common part of links whose targets are 0 and 1."""

    labels: ClassVar[bool] = True
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = None

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return zeros, because labels are discrete."""
        return np.zeros_like(a)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Choose label 1 where ``ratio`` is positive."""
        return np.where(ratio > 0, 1.0, 0.0)

    def required_squares(self, mass: float) -> float | None:
        """None: the squares follow from the labels."""
        return None


class LogisticLink(_Labels):
    """The logistic link, ``f = y a - log(1 + exp(a))``."""

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; the curvature does not depend on the label."""
        success = scipy.special.expit(a)
        failure = scipy.special.expit(-a)
        curvature = success * failure
        return Curve(np.where(y > 0, failure, -success), curvature, curvature * (failure - success))


class ProbitLink(_Labels):
    """The probit link, ``f = log Phi(s)`` with ``s = (2y - 1) a``.

    With ``q = phi(s) / Phi(s)``, the slope in s is ``q`` and the curvature ``q (q + s)``.
    """

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; in the far tail the curvature is its limit 1, to avoid cancellation."""
        sign = np.where(y > 0, 1.0, -1.0)
        s = sign * a
        with np.errstate(over="ignore", under="ignore"):
            ratio = np.exp(-0.5 * np.square(s) - 0.5 * np.log(2 * np.pi) - scipy.special.log_ndtr(s))
        far = s < -1e4
        curvature = np.where(far, 1.0, ratio * (ratio + s))
        curvature_slope = np.where(far, 0.0, ratio - curvature * (2 * ratio + s))
        return Curve(sign * ratio, curvature, sign * curvature_slope)


@dataclass(frozen=True, slots=True)
class GaussianLink(_SameCurvature):
    """The identity link with normal noise, ``f = -(y - a)^2 / (2 variance)``.

    If the noise is a parameter, ``noise_pull`` is the required value of its score ``sum w (r^2 / v - 1)``.
    """

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (None, None)
    variance: float
    noise_pull: float | None = None

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; the curvature is constant."""
        slope = (y - a) / self.variance
        return Curve(slope, np.full_like(a, 1 / self.variance), np.zeros_like(a))

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return ``1 / variance``."""
        return np.full_like(a, 1 / self.variance)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Return ``a + ratio``."""
        return a + ratio

    def required_squares(self, mass: float) -> float | None:
        """Return the sum of weights, ``variance mass``, plus ``noise_pull``; None for known noise."""
        return None if self.noise_pull is None else max(self.variance * mass + self.noise_pull, 0.0)


@dataclass(frozen=True, slots=True)
class StudentLink:
    """The identity link with Student-t noise of scale ``noise`` and ``nu`` degrees of freedom."""

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (None, None)
    noise: float
    nu: float

    def _differentiate(self, a: Array64, y: Array64) -> ShapeDerivatives:
        return StudentShape(self.nu).differentiate((y - a) / self.noise)

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; the curvature is negative where ``(y - a)^2 > nu noise^2``."""
        psi = self._differentiate(a, y)
        return Curve(-psi.first / self.noise, -psi.second / self.noise**2, psi.third / self.noise**3)

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return the curvature, because only ``y - a`` matters."""
        return self.curve(a, y).curvature

    def curvature_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return the negative slope of the curvature, because only ``y - a`` matters."""
        return -self.curve(a, y).curvature_slope

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Find the targets where the curvature is positive; they have any ``ratio``."""
        return a + self.noise * StudentShape(self.nu).find_residual(ratio / self.noise)

    def required_squares(self, mass: float) -> float | None:
        """None: any value is allowed."""
        return None


class PoissonLink(_SameCurvature):
    """The log link of the Poisson model, ``f = y a - exp(a)``; targets are real and not negative."""

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (0.0, None)

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; curvature and its slope are the rate."""
        rate = np.exp(np.clip(a, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return Curve(y - rate, rate, rate)

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return ones."""
        return np.ones_like(a)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Compute ``exp(a) (1 + ratio)``, at least zero."""
        rate = np.exp(np.clip(a, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return np.maximum(rate * (1 + ratio), 0.0)

    def required_squares(self, mass: float) -> float | None:
        """None: any value is allowed."""
        return None


@dataclass(frozen=True, slots=True)
class NegativeBinomialLink:
    """The log link of the negative binomial model with known ``dispersion`` alpha.

    It is ``f = y a - (y + 1 / alpha) log(1 + alpha mu)`` with ``mu = exp(a)``; targets are real and not negative.
    """

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (0.0, None)
    dispersion: float

    def _compute_mean(self, a: Array64) -> tuple[Array64, Array64]:
        """Compute ``mu`` and ``1 + alpha mu``."""
        mean = np.exp(np.clip(a, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return mean, 1 + self.dispersion * mean

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Compute the derivatives at ``a``; the curvature grows with the target."""
        mean, rest = self._compute_mean(a)
        curvature = mean / rest * ((1 + self.dispersion * y) / rest)
        return Curve((y - mean) / rest, curvature, curvature * (2 / rest - 1))

    def slope_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return ``1 / (1 + alpha mu)``."""
        return np.asarray(1 / self._compute_mean(a)[1])

    def curvature_in_target(self, a: Array64, y: Array64) -> Array64:
        """Return ``alpha mu / (1 + alpha mu)^2``."""
        mean, rest = self._compute_mean(a)
        return np.asarray(self.dispersion * mean / rest / rest)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Find the targets with this ratio.

        They solve ``(y - mu)(1 + alpha mu) = ratio mu (1 + alpha y)``. The ratio is at least ``-(1 + alpha mu)``, at
        ``y = 0``, and less than ``(1 + alpha mu) / (alpha mu)``.
        """
        mean, rest = self._compute_mean(a)
        inverse = self.dispersion * mean / rest
        return np.maximum(mean * (1 + ratio / rest), 0.0) / np.maximum(1 - ratio * inverse, _LEAST_REST)

    def required_squares(self, mass: float) -> float | None:
        """None: any value is allowed."""
        return None


def make_link(model: Model, theta: Array64, prior: Prior) -> Link:
    """Make the link of a model with one linear predictor.

    Other parameters have their values in ``theta`` ``(D,)``.

    Raises:
        TypeError: for any other model.
    """
    link: Link
    match model:
        case LogisticRegression():
            link = LogisticLink()
        case MultinomialLogistic() if model.predictors == 1:
            link = LogisticLink()
        case ProbitRegression():
            link = ProbitLink()
        case PoissonRegression():
            link = PoissonLink()
        case NegativeBinomialRegression():
            link = NegativeBinomialLink(model.dispersion)
        case LinearRegressionOfUnknownNoise():
            link = GaussianLink(_read_noise(model, theta) ** 2, -float(prior.gradient(theta)[-1]))
        case LinearRegression():
            link = GaussianLink(model.noise**2)
        case StudentTRegressionOfUnknownScale():
            link = StudentLink(_read_noise(model, theta), model.degrees_of_freedom)
        case StudentTRegression():
            link = StudentLink(model.noise, model.degrees_of_freedom)
        case _:
            raise TypeError(type(model).__name__)
    return link


def _read_noise(model: UnknownScale, theta: Array64) -> float:
    return model.noise * float(np.exp(np.clip(theta[-1], -MOST_LOG_NOISE, MOST_LOG_NOISE)))
