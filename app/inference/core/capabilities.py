"""The words by which methods and families of models are matched."""

from enum import StrEnum
from typing import Final


class Capability(StrEnum):
    """A part of a model that a method may need."""

    POTENTIALS = "potentials"
    """Log-likelihoods of rows, with their gradients in parameters and in points."""
    SCORES = "scores"
    """Gradients of a row's log-likelihood, also with a bound that adds no bias."""
    INFORMATION = "information"
    """Factors of a row's Fisher information."""
    STATISTICS = "statistics"
    """Sufficient statistics of a conjugate-exponential model, with proven bounds."""


class Artefact(StrEnum):
    """The data of a release."""

    POINTS = "points"
    """Weighted pseudopoints, which a user analyses with the model. A release of points may have a belief, too."""
    BELIEF = "belief"
    """Named distributions of the parameters. A normal belief has points that represent it."""
    GROUPS = "groups"
    """Weights of declared groups of rows. No rows and no points leave."""


LIKELIHOOD: Final = frozenset({Capability.POTENTIALS, Capability.SCORES, Capability.INFORMATION})
"""The capabilities of a family with a likelihood of rows and a parameter in R^D."""
