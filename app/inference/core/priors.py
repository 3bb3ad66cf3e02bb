"""Priors on a model's parameters: normal with a scale per coefficient, and hierarchical with one unknown common scale.

A :class:`HierarchicalPrior` says ``theta_j ~ N(0, (tau s_j)^2)`` with ``tau^2 ~ Inv-Gamma(v/2, v/2)``. With tau
integrated out, ``theta`` is multivariate t with v degrees of freedom and scales ``s`` (Gelman et al., *Bayesian Data
Analysis*, 3rd ed., chapter 5 and appendix A; small v lets the data shrink or free all coefficients together).

:meth:`Prior.precision` is that of the normal that touches the prior's log density from below at ``theta``: with q the
squared length of ``theta / s``, ``E[1/tau^2 | theta] = (v + d) / (v + q)`` times ``diag(s^-2)``. Newton steps with it
are steps of expectation maximisation in tau, so they climb to the exact mode; the Laplace approximation there is
conditional on the expected common precision, and always positive definite.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import scipy

from app.errors import InvalidRequest
from app.inference.core.model import Array64, Model
from app.inference.core.plan import PriorSpec
from app.inference.core.release import DesignColumn

MAX_SCALE: Final = 1e6
LEAST_SCALE: Final = 1e-6
LEAST_DEGREES, MOST_DEGREES = 0.1, 1e6


class Prior(Protocol):
    """A density on parameters in R^D, centred on zero."""

    @property
    def dimension(self) -> int:
        """D."""

    def log_density(self, theta: Array64) -> Array64:
        """Log density at parameters ``(n, D)``, shape ``(n,)``."""

    def gradient(self, theta: Array64) -> Array64:
        """Gradient of the log density at one parameter, shape ``(D,)``."""

    def precision(self, theta: Array64) -> Array64:
        """A positive definite majorant of the negative Hessian of the log density at ``theta``, ``(D, D)``."""

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, D)`` draws."""


@dataclass(frozen=True, slots=True)
class NormalPrior:
    """``theta_j ~ N(0, scales_j^2)``, independently."""

    scales: Array64
    _precision: Array64 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make what every step of every search asks for."""
        precision = np.diag(self.scales**-2.0)
        precision.setflags(write=False)
        object.__setattr__(self, "_precision", precision)

    @property
    def dimension(self) -> int:
        """The number of scales."""
        return len(self.scales)

    def log_density(self, theta: Array64) -> Array64:
        """Log density at parameters ``(n, D)``, shape ``(n,)``."""
        squares = np.square(theta / self.scales).sum(axis=1)
        return np.asarray(-0.5 * squares - np.log(self.scales).sum() - 0.5 * self.dimension * np.log(2 * np.pi))

    def gradient(self, theta: Array64) -> Array64:
        """``-theta / s^2``."""
        return -theta / self.scales**2

    def precision(self, theta: Array64) -> Array64:
        """``diag(s^-2)``, the negative Hessian itself; read only."""
        return self._precision

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, D)`` draws."""
        return self.scales * rng.standard_normal((n, self.dimension))


@dataclass(frozen=True, slots=True)
class HierarchicalPrior:
    """Multivariate t with ``degrees_of_freedom`` v on the first D - ``apart`` parameters, normal on the last."""

    scales: Array64
    degrees_of_freedom: float
    apart: int = 0

    @property
    def dimension(self) -> int:
        """The number of scales."""
        return len(self.scales)

    @property
    def _shared(self) -> int:
        return self.dimension - self.apart

    def _squares(self, theta: Array64) -> Array64:
        return np.asarray(np.square(theta / self.scales)[..., : self._shared].sum(axis=-1))

    def _weights(self, theta: Array64) -> Array64:
        """Expected precision factor of each parameter at one ``theta``: ``(v + d)/(v + q)``, or 1 for those apart."""
        v, weights = self.degrees_of_freedom, np.ones(self.dimension)
        weights[: self._shared] = (v + self._shared) / (v + self._squares(theta))
        return weights

    def log_density(self, theta: Array64) -> Array64:
        """Log density at parameters ``(n, D)``, shape ``(n,)``."""
        v, d = self.degrees_of_freedom, self._shared
        shared = -0.5 * (v + d) * np.log1p(self._squares(theta) / v)
        constant = scipy.special.gammaln((v + d) / 2) - scipy.special.gammaln(v / 2) - 0.5 * d * np.log(v * np.pi)
        apart = np.square(theta / self.scales)[:, d:].sum(axis=1)
        constant -= 0.5 * self.apart * np.log(2 * np.pi) + np.log(self.scales).sum()
        return np.asarray(shared - 0.5 * apart + constant)

    def gradient(self, theta: Array64) -> Array64:
        """``-(v + d)/(v + q) theta / s^2``."""
        return -self._weights(theta) * theta / self.scales**2

    def precision(self, theta: Array64) -> Array64:
        """``(v + d)/(v + q) diag(s^-2)``: the negative Hessian less what rank one would take from it."""
        return np.diag(self._weights(theta) * self.scales**-2.0)

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, D)`` draws."""
        v, draws = self.degrees_of_freedom, rng.standard_normal((n, self.dimension))
        draws[:, : self._shared] /= np.sqrt(rng.chisquare(v, size=(n, 1)) / v)
        return self.scales * draws


def prior_of(spec: PriorSpec, columns: Sequence[DesignColumn], model: Model) -> Prior:
    """The prior of ``model`` on a design of ``columns``. A scale by parameter outdoes one by column, and that one by
    feature; ``spec.scale`` is for the rest, but not for a parameter that is no coefficient of a column: that has 1.

    Raises:
        InvalidRequest: pointing into ``/model/prior``.
    """
    _check(spec)
    names = model.parameter_names([column.name for column in columns])
    coefficients = model.predictors * len(columns)
    scales = np.ones(len(names))
    known = set[str]()
    for index, name in enumerate(names):
        keys = [name]
        if index < coefficients:
            column = columns[index % len(columns)]
            keys += [column.name, column.source or column.name]
            scales[index] = spec.scale
        known.update(keys)
        scales[index] = next((spec.scales[key] for key in keys if key in spec.scales), scales[index])
    if not known >= set(spec.scales):
        raise InvalidRequest.at("/model/prior/scales", "name design columns, features or parameters of this model")
    if spec.degrees_of_freedom is None:
        return NormalPrior(scales)
    return HierarchicalPrior(scales, spec.degrees_of_freedom, len(names) - coefficients)


def _check(spec: PriorSpec) -> None:
    within = f"must be at least {LEAST_SCALE:g} and at most {MAX_SCALE:g}"
    if not LEAST_SCALE <= spec.scale <= MAX_SCALE:
        raise InvalidRequest.at("/model/prior/scale", within)
    if not all(LEAST_SCALE <= scale <= MAX_SCALE for scale in spec.scales.values()):
        raise InvalidRequest.at("/model/prior/scales", within)
    degrees = spec.degrees_of_freedom
    if degrees is not None and not LEAST_DEGREES <= degrees <= MOST_DEGREES:
        raise InvalidRequest.at(
            "/model/prior/degrees_of_freedom", f"must be at least {LEAST_DEGREES:g} and at most {MOST_DEGREES:g}"
        )
