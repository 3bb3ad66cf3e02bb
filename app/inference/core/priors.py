"""Priors on a model's parameters: normal, or hierarchical with a common unknown scale.

A :class:`HierarchicalPrior` is ``theta_j ~ N(m_j, (tau s_j)^2)`` with ``tau^2 ~ Inv-Gamma(v/2, v/2)``. With tau
integrated out, ``theta`` is multivariate t with v degrees of freedom, mean ``m`` and scales ``s``. With a small v, the
data determine how far all coefficients shrink towards the mean. Source: Gelman et al., *Bayesian Data Analysis*, 3rd
ed., chapter 5 and appendix A.

:meth:`Prior.precision` is the precision of a normal minorant: a normal log density that touches the prior's from below
at ``theta``. With q the squared length of ``(theta - m) / s``, it is ``E[1/tau^2 | theta] = (v + d) / (v + q)`` times
``diag(s^-2)``. Newton steps with it are steps of expectation maximisation in tau, so they climb to the exact mode. The
Laplace approximation there is conditional on the expected common precision, and it is always positive definite.
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
MAX_MEAN: Final = 100.0
"""Largest size of a prior mean. In the design's coordinates, coefficients of this size are far beyond any table."""
LEAST_SCALE: Final = 1e-6
LEAST_DEGREES, MOST_DEGREES = 0.1, 1e6
_WITHIN: Final = f"Use a number of at least {LEAST_SCALE:g} and at most {MAX_SCALE:g}."


class Prior(Protocol):
    """A density on parameters in R^D."""

    @property
    def dimension(self) -> int:
        """D."""

    @property
    def mean(self) -> Array64:
        """The mean ``(D,)``, where the density is largest; read only."""

    def log_density(self, theta: Array64) -> Array64:
        """Compute the log density at parameters ``(n, D)``, shape ``(n,)``."""

    def gradient(self, theta: Array64) -> Array64:
        """Compute the gradient of the log density at one parameter, shape ``(D,)``."""

    def precision(self, theta: Array64) -> Array64:
        """Compute the precision ``(D, D)`` of the normal minorant at ``theta``; positive definite.

        It is not less than the negative Hessian of the log density.
        """

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """Draw ``(n, D)`` parameters."""


@dataclass(frozen=True, slots=True)
class NormalPrior:
    """``theta_j ~ N(mean_j, scales_j^2)``, independently; without ``centre``, the mean is zero."""

    scales: Array64
    centre: Array64 | None = None
    mean: Array64 = field(init=False, repr=False, compare=False)
    _precision: Array64 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute mean and precision once; every Newton step reads them."""
        object.__setattr__(self, "mean", _freeze(self.centre, len(self.scales)))
        precision = np.diag(self.scales**-2.0)
        precision.setflags(write=False)
        object.__setattr__(self, "_precision", precision)

    @property
    def dimension(self) -> int:
        """The number of scales."""
        return len(self.scales)

    def log_density(self, theta: Array64) -> Array64:
        """Log density at parameters ``(n, D)``, shape ``(n,)``."""
        squares = np.square((theta - self.mean) / self.scales).sum(axis=1)
        return np.asarray(-0.5 * squares - np.log(self.scales).sum() - 0.5 * self.dimension * np.log(2 * np.pi))

    def gradient(self, theta: Array64) -> Array64:
        """``-(theta - m) / s^2``."""
        return (self.mean - theta) / self.scales**2

    def precision(self, theta: Array64) -> Array64:
        """``diag(s^-2)``, the negative Hessian itself; read only."""
        return self._precision

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, D)`` draws."""
        return self.mean + self.scales * rng.standard_normal((n, self.dimension))


@dataclass(frozen=True, slots=True)
class HierarchicalPrior:
    """A multivariate t distribution, with independent normals for the last parameters.

    The last ``independent`` parameters have the scales ``scales``, but not the common factor tau.
    """

    scales: Array64
    degrees_of_freedom: float
    independent: int = 0
    centre: Array64 | None = None
    mean: Array64 = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the mean once; without ``centre``, it is zero."""
        object.__setattr__(self, "mean", _freeze(self.centre, len(self.scales)))

    @property
    def dimension(self) -> int:
        """The number of scales."""
        return len(self.scales)

    @property
    def _shared(self) -> int:
        return self.dimension - self.independent

    def _squares(self, theta: Array64) -> Array64:
        return np.asarray(np.square((theta - self.mean) / self.scales)[..., : self._shared].sum(axis=-1))

    def _weights(self, theta: Array64) -> Array64:
        """Expected precision factor of each parameter: ``(v + d)/(v + q)``, or 1 if it is independent."""
        v, weights = self.degrees_of_freedom, np.ones(self.dimension)
        weights[: self._shared] = (v + self._shared) / (v + self._squares(theta))
        return weights

    def log_density(self, theta: Array64) -> Array64:
        """Log density at parameters ``(n, D)``, shape ``(n,)``."""
        v, d = self.degrees_of_freedom, self._shared
        shared = -0.5 * (v + d) * np.log1p(self._squares(theta) / v)
        constant = scipy.special.gammaln((v + d) / 2) - scipy.special.gammaln(v / 2) - 0.5 * d * np.log(v * np.pi)
        squares = np.square((theta - self.mean) / self.scales)[:, d:].sum(axis=1)
        constant -= 0.5 * self.independent * np.log(2 * np.pi) + np.log(self.scales).sum()
        return np.asarray(shared - 0.5 * squares + constant)

    def gradient(self, theta: Array64) -> Array64:
        """``-(v + d)/(v + q) (theta - m) / s^2``."""
        return self._weights(theta) * (self.mean - theta) / self.scales**2

    def precision(self, theta: Array64) -> Array64:
        """``(v + d)/(v + q) diag(s^-2)``: the negative Hessian without its rank-one term."""
        return np.diag(self._weights(theta) * self.scales**-2.0)

    def sample(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, D)`` draws."""
        v, draws = self.degrees_of_freedom, rng.standard_normal((n, self.dimension))
        draws[:, : self._shared] /= np.sqrt(rng.chisquare(v, size=(n, 1)) / v)
        return self.mean + self.scales * draws


def _freeze(centre: Array64 | None, size: int) -> Array64:
    mean = np.zeros(size) if centre is None else centre.copy()
    mean.setflags(write=False)
    return mean


def make_prior(spec: PriorSpec, columns: Sequence[DesignColumn], model: Model) -> Prior:
    """Make the prior of ``model`` on a design of ``columns``.

    A scale by parameter has precedence over one by column, and that over one by feature or term. Other coefficients
    have ``spec.scale``. Parameters that are not coefficients have scale 1 unless one is stated by name. Means have the
    same precedence, and are zero unless they are stated.

    Raises:
        InvalidRequest: pointing into ``/model/prior``.
    """
    _check(spec)
    names = model.parameter_names([column.name for column in columns])
    coefficients = model.predictors * len(columns)
    scales, mean = np.ones(len(names)), np.zeros(len(names))
    accepted = set[str]()
    for index, name in enumerate(names):
        keys = [name]
        if index < coefficients:
            column = columns[index % len(columns)]
            keys += [column.name, column.term or column.source or column.name]
            scales[index] = spec.scale
        accepted.update(keys)
        scales[index] = next((spec.scales[key] for key in keys if key in spec.scales), scales[index])
        mean[index] = next((spec.mean[key] for key in keys if key in spec.mean), 0.0)
    for member, stated in (("scales", spec.scales), ("mean", spec.mean)):
        if not accepted >= set(stated):
            raise InvalidRequest.at(
                f"/model/prior/{member}", "Name design columns, features, terms or parameters of this model."
            )
    centre = mean if spec.mean else None
    if spec.degrees_of_freedom is None:
        return NormalPrior(scales, centre)
    return HierarchicalPrior(scales, spec.degrees_of_freedom, len(names) - coefficients, centre)


def check_scale(scale: float) -> float:
    """Raise :class:`InvalidRequest` at ``/model/prior/scale`` unless ``scale`` is within the limits; return it."""
    if not LEAST_SCALE <= scale <= MAX_SCALE:
        raise InvalidRequest.at("/model/prior/scale", _WITHIN)
    return scale


def _check(spec: PriorSpec) -> None:
    check_scale(spec.scale)
    if not all(LEAST_SCALE <= scale <= MAX_SCALE for scale in spec.scales.values()):
        raise InvalidRequest.at("/model/prior/scales", _WITHIN)
    if not all(-MAX_MEAN <= mean <= MAX_MEAN for mean in spec.mean.values()):
        raise InvalidRequest.at("/model/prior/mean", f"Use numbers of at least {-MAX_MEAN:g} and at most {MAX_MEAN:g}.")
    degrees = spec.degrees_of_freedom
    if degrees is not None and not LEAST_DEGREES <= degrees <= MOST_DEGREES:
        raise InvalidRequest.at(
            "/model/prior/degrees_of_freedom",
            f"Use a number of at least {LEAST_DEGREES:g} and at most {MOST_DEGREES:g}.",
        )
