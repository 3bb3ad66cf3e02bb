"""A fit's givens, and the part of them that a linear predictor sees."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.bends import Bends
from app.inference.fitting.links import Link
from app.inference.fitting.target import Target


class Curved(Protocol):
    """What of a prior a fit needs."""

    def gradient(self, theta: Array64) -> Array64:
        """Gradient of the log density."""

    def precision(self, theta: Array64) -> Array64:
        """Majorant of the negative Hessian."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The points of ``model`` under ``prior``, towards ``target``; ``bends`` are the model's, in its predictors."""

    model: Model
    bends: Bends
    prior: Prior
    target: Target
    width: int  # of design rows
    moving_targets: tuple[float | None, float | None] | None  # their bounds; None: targets are discrete

    def blocks(self) -> Array64:
        """``T`` with ``T theta`` the coefficients of each predictor in turn.

        A parameter that is no coefficient is a predictor of its own, on the intercept.
        """
        parameters, coefficients = len(self.target.mean), self.width * self.model.predictors
        blocks = np.zeros((coefficients + self.width * (parameters - coefficients), parameters))
        blocks[:coefficients, :coefficients] = np.eye(coefficients)
        for own in range(coefficients, parameters):
            blocks[coefficients + self.width * (own - coefficients + 1) - 1, own] = 1.0
        return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedProblem(Problem):
    """With one linear predictor, whose ``link`` it is, of ``width`` coefficients; they come first in ``theta``."""

    link: Link

    @property
    def complete(self) -> bool:
        """Whether coefficients are all the parameters that there are."""
        return self.width == len(self.target.mean)

    def most_directions(self, size: int) -> int:
        """How many directions ``size`` points can hold: scores that are given ask for one point more."""
        return min(self.width, size if self.complete and not self.link.labels else size - 1)

    def coefficients(self) -> tuple[Target, Curved]:
        """Target and prior of the coefficients, other parameters being what they are at the target's mean."""
        target = Target(self.target.mean[: self.width], self.target.precision[: self.width, : self.width])
        return target, _Conditional(self.prior, self.target.mean[self.width :])


@dataclass(frozen=True, slots=True)
class _Conditional:
    prior: Prior
    others: Array64

    def gradient(self, theta: Array64) -> Array64:
        return self.prior.gradient(np.concatenate((theta, self.others)))[: len(theta)]

    def precision(self, theta: Array64) -> Array64:
        return self.prior.precision(np.concatenate((theta, self.others)))[: len(theta), : len(theta)]
