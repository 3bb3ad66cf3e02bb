"""Requests of an analyst: models and mechanisms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from corevault._arguments import describe, require_mapping
from corevault.errors import WrongType


class ModelRequest(Protocol):
    """A model that a quote or a job can name."""

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""


@dataclass(frozen=True, kw_only=True)
class _OnColumns:
    """``features``, and a prior ``N(0, prior_scale²)`` on each coefficient of the design's columns.

    The design maps the declared bounds to −1 and 1. With a ``prior_scale`` of 1, the predictor changes by about 2 from
    one bound to the other. The prior covers the intercept too. ``prior_scales`` override the scale by the name of a
    feature, a design column or a parameter. With ``degrees_of_freedom`` all scales share one unknown factor.
    """

    family: ClassVar[str]

    features: list[str] | tuple[str, ...]
    prior_scale: float = 1.0
    prior_scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None

    def __post_init__(self) -> None:
        given: object = self.features
        if isinstance(given, str):
            raise WrongType("features must be a list of column names, not one name.")
        if isinstance(given, set | frozenset | Mapping) or not isinstance(given, Sequence):
            raise WrongType(f"features must be a list of column names in a fixed order; {describe(given)}.")

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""
        prior: dict[str, Any] = {"scale": self.prior_scale}
        if self.prior_scales:
            prior["scales"] = require_mapping(self.prior_scales, "prior_scales")
        if self.degrees_of_freedom is not None:
            prior["degrees_of_freedom"] = self.degrees_of_freedom
        body = {"family": self.family, "features": list(self.features), "prior": prior}
        optional = {name: getattr(self, name, None) for name in ("target", "noise_scale", "dispersion")}
        return body | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(_OnColumns):
    """Bayesian logistic regression of the binary ``target`` on ``features``."""

    family: ClassVar[str] = "logistic-regression"
    target: str


@dataclass(frozen=True, kw_only=True)
class ProbitRegression(_OnColumns):
    """Bayesian probit regression of the binary ``target`` on ``features``."""

    family: ClassVar[str] = "probit-regression"
    target: str


@dataclass(frozen=True, kw_only=True)
class PoissonRegression(_OnColumns):
    """Bayesian Poisson regression of the integer ``target``, with a log link.

    The declared lower bound of ``target`` is 0 or more.
    """

    family: ClassVar[str] = "poisson-regression"
    target: str


@dataclass(frozen=True, kw_only=True)
class NegativeBinomialRegression(_OnColumns):
    """Bayesian negative binomial regression, for counts that vary more than Poisson counts.

    The link is the logarithm, and the declared lower bound of the integer ``target`` is 0 or more. Counts of mean m
    have the variance ``m + dispersion m²``. ``dispersion`` is from 0.001 to 1000; the server's default is 1.
    """

    family: ClassVar[str] = "negative-binomial-regression"
    target: str
    dispersion: float | None = None


@dataclass(frozen=True, kw_only=True)
class MultinomialLogistic(_OnColumns):
    """Bayesian multinomial logistic regression of the categorical ``target``.

    The first category of ``target`` is the reference.
    """

    family: ClassVar[str] = "multinomial-logistic"
    target: str


@dataclass(frozen=True, kw_only=True)
class LinearRegression(_OnColumns):
    """Bayesian linear regression of the real or integer ``target``. Its bounds map to −1 and 1.

    ``noise_scale`` is the standard deviation of the noise in the target's units. Without it the noise is unknown, and
    ``log_noise_scale`` is one more parameter.
    """

    family: ClassVar[str] = "linear-regression"
    target: str
    noise_scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class StudentTRegression(_OnColumns):
    """Bayesian linear regression with Student-t noise, for targets with outliers.

    ``target`` is real or integer, and its bounds map to −1 and 1. ``noise_degrees_of_freedom`` is from 1, for the
    heaviest tails of the noise, to 100; the server's default is 4. ``noise_scale`` is the scale of the noise in the
    target's units. Without it the scale is unknown, and ``log_noise_scale`` is one more parameter.
    """

    family: ClassVar[str] = "student-t-regression"
    target: str
    noise_scale: float | None = None
    noise_degrees_of_freedom: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""
        degrees = self.noise_degrees_of_freedom
        return _OnColumns.to_json(self) | ({} if degrees is None else {"degrees_of_freedom": degrees})


@dataclass(frozen=True, kw_only=True)
class GaussianMean(_OnColumns):
    """The mean of real and integer ``features`` under normal noise.

    ``noise_scale`` is the standard deviation of the noise, by default 1. Mean and noise are in coordinates where the
    bounds are −1 and 1. The model has no target and no intercept.
    """

    family: ClassVar[str] = "gaussian-mean"
    noise_scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """The noise of a job, stated directly instead of calibrated from a target ε."""

    noise_multiplier: float
    sampling_rate: float
    iterations: int

    def to_json(self) -> dict[str, Any]:
        """The ``privacy`` member of the request."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.sampling_rate,
            "iterations": self.iterations,
        }
