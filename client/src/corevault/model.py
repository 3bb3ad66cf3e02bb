"""What an analyst asks for: a model, and either a price or a mechanism."""

from dataclasses import dataclass
from typing import Any, Protocol


class ModelRequest(Protocol):
    """A model as a quote or a job names it."""

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""


@dataclass(frozen=True, kw_only=True)
class LogisticRegression:
    """Bayesian logistic regression of the binary ``target`` on ``features``, prior ``N(0, prior_scale² I)``.

    The prior is on the coefficients of the design's columns (intercept included), which map the declared
    bounds to −1 and 1: a ``prior_scale`` of 1 says that going from one bound to the other changes the
    log-odds by two or so.
    """

    features: list[str] | tuple[str, ...]
    target: str
    prior_scale: float = 1.0

    def __post_init__(self) -> None:
        given: object = self.features
        if isinstance(given, str):
            raise TypeError("features must be a list of column names, not one name.")

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""
        return {
            "family": "logistic-regression",
            "features": list(self.features),
            "target": self.target,
            "prior": {"scale": self.prior_scale},
        }


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
