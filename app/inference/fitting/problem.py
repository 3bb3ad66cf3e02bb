"""The fitting problem: model, prior and target, and its part for one linear predictor."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.links import Link
from app.inference.fitting.potential_derivatives import PotentialDerivatives
from app.inference.fitting.target import Target


class PriorCurvature(Protocol):
    """Gradient and precision of a prior, of which only these are needed."""

    def gradient(self, theta: Array64) -> Array64:
        """Compute the gradient of the log density at ``theta``."""

    def precision(self, theta: Array64) -> Array64:
        """Compute the precision of the normal minorant at ``theta``, as :meth:`Prior.precision`."""


@dataclass(frozen=True, slots=True)
class FitProblem:
    """A model and a prior whose posterior shall be close to ``target``."""

    model: Model
    derivatives: PotentialDerivatives
    prior: Prior
    target: Target
    width: int  # of design rows
    moving_targets: tuple[float | None, float | None] | None  # their bounds; None: targets are discrete

    def blocks(self) -> Array64:
        """Make the matrix ``T`` such that ``T theta`` holds the coefficients of all predictors.

        A parameter that is not a coefficient is a further predictor: the intercept times this parameter.
        """
        parameters, coefficients = len(self.target.mean), self.width * self.model.predictors
        blocks = np.zeros((coefficients + self.width * (parameters - coefficients), parameters))
        blocks[:coefficients, :coefficients] = np.eye(coefficients)
        for own in range(coefficients, parameters):
            blocks[coefficients + self.width * (own - coefficients + 1) - 1, own] = 1.0
        return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePredictorProblem(FitProblem):
    """A problem with one linear predictor; its ``width`` coefficients come first in ``theta``."""

    link: Link

    @property
    def complete(self) -> bool:
        """Whether there are no parameters besides the coefficients."""
        return self.width == len(self.target.mean)

    def most_directions(self, size: int) -> int:
        """The number of directions that ``size`` points can span.

        Fixed scores, of labels or of unknown noise, need one further point.
        """
        return min(self.width, size if self.complete and not self.link.labels else size - 1)

    def coefficients(self) -> tuple[Target, PriorCurvature]:
        """Target and prior of the coefficients, given the other parameters at the target's mean."""
        target = Target(self.target.mean[: self.width], self.target.precision[: self.width, : self.width])
        return target, _ConditionalPrior(self.prior, self.target.mean[self.width :])


@dataclass(frozen=True, slots=True)
class _ConditionalPrior:
    prior: Prior
    others: Array64

    def gradient(self, theta: Array64) -> Array64:
        return self.prior.gradient(np.concatenate((theta, self.others)))[: len(theta)]

    def precision(self, theta: Array64) -> Array64:
        return self.prior.precision(np.concatenate((theta, self.others)))[: len(theta), : len(theta)]
