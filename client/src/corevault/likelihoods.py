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


def linear(noise: float) -> Curve:
    """The curve of normal targets with the standard deviation ``noise``."""

    def curve(eta: Array, y: Array) -> tuple[Array, Array, Array]:
        e = (y - eta) / noise
        return -0.5 * e**2, e / noise, np.full_like(e, noise**-2.0)

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
    """Normal targets of unknown noise; ``theta`` ends with ``log(noise / REFERENCE_NOISE)``."""

    x: Array
    y: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(p + 1,)``."""
        sigma = REFERENCE_NOISE * np.exp(np.clip(theta[-1], -300.0, 300.0))
        e = (self.y - self.x @ theta[:-1]) / sigma
        total, squares = self.weight.sum(), float(self.weight @ e**2)
        by_coefficient = self.x.T @ (self.weight * e) / sigma
        across = 2.0 * by_coefficient[:, None]
        return Expansion(
            value=float(-0.5 * squares - total * theta[-1]),
            gradient=np.append(by_coefficient, squares - total),
            information=np.block(
                [
                    [self.x.T @ (self.x * self.weight[:, None]) / sigma**2, across],
                    [across.T, np.array([[2.0 * squares]])],
                ]
            ),
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
    """Rows that are normal with mean ``theta`` and standard deviation ``noise``."""

    noise: float
    x: Array
    weight: Array

    def expand(self, theta: Array) -> Expansion:
        """The expansion at ``theta`` ``(p,)``."""
        total, weight = self.weight @ self.x, float(self.weight.sum())
        return Expansion(
            value=float(total @ theta - 0.5 * weight * theta @ theta) / self.noise**2,
            gradient=(total - weight * theta) / self.noise**2,
            information=np.eye(len(theta)) * (weight / self.noise**2),
        )
