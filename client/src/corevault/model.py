"""What an analyst asks for: a model, and either a price or a mechanism."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from corevault._arguments import mapping, what_came
from corevault.errors import WrongType


class ModelRequest(Protocol):
    """A model as a quote or a job names it."""

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""


@dataclass(frozen=True, kw_only=True)
class _OnColumns:
    """``features``, and a prior ``N(0, prior_scale²)`` on each coefficient of the design's columns.

    These map the declared bounds to −1 and 1 (intercept included): a ``prior_scale`` of 1 says that going from one
    bound to the other changes the predictor by two or so. ``prior_scales`` override it by the name of a feature, a
    design column or a parameter; with ``degrees_of_freedom`` all scales share one unknown factor.
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
            raise WrongType(f"features must be a list of column names in a fixed order; {what_came(given)}.")

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""
        prior: dict[str, Any] = {"scale": self.prior_scale}
        if self.prior_scales:
            prior["scales"] = mapping(self.prior_scales, "prior_scales")
        if self.degrees_of_freedom is not None:
            prior["degrees_of_freedom"] = self.degrees_of_freedom
        stated = {"family": self.family, "features": list(self.features), "prior": prior}
        return stated | {
            name: getattr(self, name) for name in ("target", "noise_scale") if getattr(self, name, None) is not None
        }


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
    """Bayesian Poisson regression of the integer ``target``, with a log link. Its declared lower bound is 0 or more."""

    family: ClassVar[str] = "poisson-regression"
    target: str


@dataclass(frozen=True, kw_only=True)
class MultinomialLogistic(_OnColumns):
    """Bayesian multinomial logistic regression of the categorical ``target``; its first category is the reference."""

    family: ClassVar[str] = "multinomial-logistic"
    target: str


@dataclass(frozen=True, kw_only=True)
class LinearRegression(_OnColumns):
    """Bayesian linear regression of the real or integer ``target``. Its bounds map to −1 and 1.

    ``noise_scale`` is the noise's standard deviation in the target's own units; without it the noise is unknown, and
    ``log_noise_scale`` one more parameter.
    """

    family: ClassVar[str] = "linear-regression"
    target: str
    noise_scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class GaussianMean(_OnColumns):
    """The mean of real and integer ``features`` under normal noise.

    ``noise_scale`` is its standard deviation, 1 where absent. Both are in coordinates where the bounds are −1 and 1.
    The model has no target and no intercept.
    """

    family: ClassVar[str] = "gaussian-mean"
    noise_scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """The noise named outright, instead of a target ε from which it is calibrated."""

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
