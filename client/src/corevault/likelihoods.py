"""Weighted log-likelihoods of the model families, with the derivatives that Newton's method needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

Array = NDArray[np.float64]
REFERENCE_NOISE: Final = 0.25
"""The noise at which ``log_noise_scale`` is zero, in half ranges of the target."""


class Expansion(NamedTuple):
    """Value, gradient ``(D,)`` and negative Hessian ``(D, D)`` at one point."""

    value: float
    gradient: Array
    information: Array


class Likelihood(Protocol):
    """``sum_i w_i log p(row_i | theta)``, up to a constant."""

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(D,)``."""


Curve = Callable[[Array, Array], tuple[Array, Array, Array]]
"""A function of predictors and targets ``(n,)``. Returns log-likelihoods, slopes and negative curvatures, ``(n,)``."""


def _logistic(eta: Array, y: Array) -> tuple[Array, Array, Array]:
    p = expit(eta)
    return y * eta - np.logaddexp(0.0, eta), y - p, p * (1.0 - p)


def _probit(eta: Array, y: Array) -> tuple[Array, Array, Array]:
    sign = 2.0 * y - 1.0
    value = log_ndtr(sign * eta)
    ratio = np.exp(-0.5 * eta**2 - 0.5 * np.log(2.0 * np.pi) - value)
    return value, sign * ratio, ratio * (ratio + sign * eta)


def _poisson(eta: Array, y: Array) -> tuple[Array, Array, Array]:
    rate = np.exp(np.minimum(eta, 300.0))
    return y * eta - rate, y - rate, rate


def negative_binomial(dispersion: float) -> Curve:
    """The curve of negative binomial counts with variance ``mean + dispersion mean²``."""

    def curve(eta: Array, y: Array) -> tuple[Array, Array, Array]:
        mean = np.exp(np.clip(eta, -300.0, 300.0))
        rest = 1.0 + dispersion * mean
        value = y * eta - (y + 1.0 / dispersion) * np.log1p(dispersion * mean)
        return value, (y - mean) / rest, mean / rest * ((1.0 + dispersion * y) / rest)

    return curve


Shape = Callable[[Array], tuple[Array, Array, Array]]
"""The log density of standardised noise ``(n,)``, and its first two derivatives."""


def normal(e: Array) -> tuple[Array, Array, Array]:
    """The shape of normal noise."""
    return -0.5 * e**2, -e, np.full_like(e, -1.0)


def student_t(degrees_of_freedom: float) -> Shape:
    """The shape of Student-t noise. Its second derivative is positive in the tails."""
    nu, size = degrees_of_freedom, (degrees_of_freedom + 1.0) / degrees_of_freedom

    def shape(e: Array) -> tuple[Array, Array, Array]:
        share = 1.0 / (1.0 + e**2 / nu)
        return 0.5 * (nu + 1.0) * np.log(share), -size * share * e, -size * share * (2.0 * share - 1.0)

    return shape


def make_curve(noise: float, shape: Shape) -> Curve:
    """The curve of targets whose noise has the scale ``noise``."""

    def curve(eta: Array, y: Array) -> tuple[Array, Array, Array]:
        value, first, second = shape((y - eta) / noise)
        return value, -first / noise, -second / noise**2

    return curve


CURVES: Final[Mapping[str, Curve]] = {
    "logistic-regression": _logistic,
    "probit-regression": _probit,
    "poisson-regression": _poisson,
}


@dataclass(frozen=True, eq=False)
class OnePredictor:
    """Targets whose distribution depends on ``x'theta`` alone, through ``curve``."""

    curve: Curve
    x: Array
    y: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(p,)``."""
        value, slope, curvature = self.curve(self.x @ theta, self.y)
        information = self.x.T @ (self.x * (self.weight * curvature)[:, None])
        return Expansion(float(self.weight @ value), self.x.T @ (self.weight * slope), information)


@dataclass(frozen=True, eq=False)
class UnknownNoise:
    """Targets with unknown noise of a known ``shape``; ``theta`` ends with ``log(noise / REFERENCE_NOISE)``."""

    shape: Shape
    x: Array
    y: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(p + 1,)``."""
        sigma = REFERENCE_NOISE * np.exp(np.clip(theta[-1], -300.0, 300.0))
        e = (self.y - self.x @ theta[:-1]) / sigma
        value, first, second = self.shape(e)
        total, slope = self.weight.sum(), first + e * second  # the slope of ``e first``
        across = -self.x.T @ (self.weight * slope)[:, None] / sigma
        own = -self.x.T @ (self.x * (self.weight * second)[:, None]) / sigma**2
        return Expansion(
            value=float(self.weight @ value - total * theta[-1]),
            gradient=np.append(-self.x.T @ (self.weight * first) / sigma, -self.weight @ (e * first) - total),
            information=np.block([[own, across], [across.T, np.array([[-float(self.weight @ (e * slope))]])]]),
        )


@dataclass(frozen=True, eq=False)
class Multinomial:
    """Classes ``y`` by index. ``theta`` holds the coefficients of every class but the first, class by class."""

    classes: int
    x: Array
    y: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``((K - 1) p,)``."""
        free, width = self.classes - 1, self.x.shape[1]
        eta = self.x @ theta.reshape(free, width).T
        largest = np.maximum(eta.max(axis=1), 0.0)
        odds = np.exp(eta - largest[:, None])
        total = np.exp(-largest) + odds.sum(axis=1)
        p, is_class = odds / total[:, None], (self.y[:, None] == np.arange(1, self.classes)).astype(np.float64)
        covariance = self.weight[:, None, None] * p[:, :, None] * (np.eye(free) - p[:, None, :])
        information = np.einsum("njk,na,nb->jakb", covariance, self.x, self.x, optimize=True)
        return Expansion(
            value=float(self.weight @ (np.vecdot(is_class, eta) - largest - np.log(total))),
            gradient=((is_class - p).T @ (self.x * self.weight[:, None])).ravel(),
            information=information.reshape(len(theta), len(theta)),
        )


@dataclass(frozen=True, eq=False)
class Mean:
    """Rows that are normal with mean ``theta``; ``precision`` ``(p, p)`` is the inverse covariance of the noise."""

    precision: Array
    x: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(p,)``."""
        total, weight = self.weight @ self.x, float(self.weight.sum())
        return Expansion(
            value=float((total - 0.5 * weight * theta) @ self.precision @ theta),
            gradient=self.precision @ (total - weight * theta),
            information=weight * self.precision,
        )
