"""How a row's log-likelihood bends along its linear predictor ``a = x'theta``, for models with one predictor a row.

``slope`` is ``r = df/da``, ``curvature`` is ``v = -d2f/da2`` (positive), ``bend`` is ``dv/da``; the curvature of
models with real targets does not depend on the target, so that any score can be had at any location.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import scipy

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.models.linear import LinearRegression, LinearRegressionOfUnknownNoise
from app.inference.models.logistic import LogisticRegression
from app.inference.models.multinomial import MultinomialLogistic
from app.inference.models.poisson import PoissonRegression
from app.inference.models.probit import ProbitRegression

_LARGEST_EXPONENT = 300.0
MOST_LOG_NOISE = 100.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Derivatives of potentials in their linear predictor, each ``(M,)``."""

    slope: Array64
    curvature: Array64
    bend: Array64


class Link(Protocol):
    """A family's potentials as functions of the linear predictor and the target."""

    labels: ClassVar[bool]  # targets are 0 and 1, and do not move
    target_bounds: ClassVar[tuple[float | None, float | None] | None]  # of targets that move

    def curve(self, a: Array64, y: Array64) -> Curve:
        """The derivatives at predictors ``a`` and targets ``y``, both ``(M,)``."""

    def slope_in_target(self, a: Array64) -> Array64:
        """``dr/dy``, ``(M,)``; zero for labels."""

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """Targets with ``r / v = ratio`` (labels: 1 for a positive ratio), as near as the family allows."""

    def squares(self, mass: float) -> float | None:
        """What ``sum w r^2 / v`` has to be where ``sum w v = mass``; None where it may be anything."""


class _Labels:
    """Targets 0 and 1."""

    labels: ClassVar[bool] = True
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = None

    def slope_in_target(self, a: Array64) -> Array64:
        """Zero: labels are discrete."""
        return np.zeros_like(a)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """1 where the score is to be positive."""
        return np.where(ratio > 0, 1.0, 0.0)

    def squares(self, mass: float) -> float | None:
        """A matter of where the labels are."""
        return None


class LogisticLink(_Labels):
    """``f = y a - log(1 + exp(a))``."""

    def curve(self, a: Array64, y: Array64) -> Curve:
        """The derivatives at ``a``; both labels share the curvature."""
        success = scipy.special.expit(a)
        failure = scipy.special.expit(-a)
        curvature = success * failure
        return Curve(np.where(y > 0, failure, -success), curvature, curvature * (failure - success))


class ProbitLink(_Labels):
    """``f = log Phi(s)`` with ``s = (2y - 1) a``; with ``q = phi(s) / Phi(s)``: ``r = q``, ``v = q (q + s)``."""

    def curve(self, a: Array64, y: Array64) -> Curve:
        """The derivatives at ``a``; in the far tail the curvature's limit 1 replaces a difference of like numbers."""
        sign = np.where(y > 0, 1.0, -1.0)
        s = sign * a
        with np.errstate(over="ignore", under="ignore"):
            ratio = np.exp(-0.5 * np.square(s) - 0.5 * np.log(2 * np.pi) - scipy.special.log_ndtr(s))
        far = s < -1e4
        curvature = np.where(far, 1.0, ratio * (ratio + s))
        bend = np.where(far, 0.0, ratio - curvature * (2 * ratio + s))
        return Curve(sign * ratio, curvature, sign * bend)


@dataclass(frozen=True, slots=True)
class GaussianLink:
    """``f = -(y - a)^2 / (2 variance)``.

    ``noise_pull``, where the noise is a parameter too, is what balances its score: ``sum w (r^2 / v - 1)``.
    """

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (None, None)
    variance: float
    noise_pull: float | None = None

    def curve(self, a: Array64, y: Array64) -> Curve:
        """A constant curvature."""
        slope = (y - a) / self.variance
        return Curve(slope, np.full_like(a, 1 / self.variance), np.zeros_like(a))

    def slope_in_target(self, a: Array64) -> Array64:
        """``1 / variance``."""
        return np.full_like(a, 1 / self.variance)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """``a + ratio``."""
        return a + ratio

    def squares(self, mass: float) -> float | None:
        """The weights' sum, ``variance mass``, and the pull."""
        return None if self.noise_pull is None else max(self.variance * mass + self.noise_pull, 0.0)


class PoissonLink:
    """``f = y a - exp(a)``; targets are real and not negative."""

    labels: ClassVar[bool] = False
    target_bounds: ClassVar[tuple[float | None, float | None] | None] = (0.0, None)

    def curve(self, a: Array64, y: Array64) -> Curve:
        """Curvature and bend are the rate."""
        rate = np.exp(np.clip(a, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return Curve(y - rate, rate, rate)

    def slope_in_target(self, a: Array64) -> Array64:
        """One."""
        return np.ones_like(a)

    def targets(self, a: Array64, ratio: Array64) -> Array64:
        """``exp(a) (1 + ratio)``, never negative."""
        rate = np.exp(np.clip(a, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return np.maximum(rate * (1 + ratio), 0.0)

    def squares(self, mass: float) -> float | None:
        """Anything."""
        return None


def link_of(model: Model, theta: Array64, prior: Prior) -> Link:
    """That of a model with one linear predictor a row, other parameters being what they are in ``theta`` ``(D,)``."""
    match model:
        case LogisticRegression():
            return LogisticLink()
        case MultinomialLogistic() if model.predictors == 1:
            return LogisticLink()
        case ProbitRegression():
            return ProbitLink()
        case PoissonRegression():
            return PoissonLink()
        case LinearRegressionOfUnknownNoise():
            noise = model.noise * float(np.exp(np.clip(theta[-1], -MOST_LOG_NOISE, MOST_LOG_NOISE)))
            return GaussianLink(noise**2, -float(prior.gradient(theta)[-1]))
        case LinearRegression():
            return GaussianLink(model.noise**2)
    raise TypeError(type(model).__name__)
