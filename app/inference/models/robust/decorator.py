"""The common part of beta-likelihoods: all that does not depend on ``beta`` comes from the decorated model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64, Model, SeparateEvaluation

M = TypeVar("M", bound=Model)


class RobustModel(Model, Protocol):
    """A model with a beta-likelihood.

    Rows are damped by their potentials, so the log-likelihood may have several modes: every expansion has ``scoring``.
    """

    @property
    def beta(self) -> float:
        """The power of densities, above 0 and at most 1."""

    @property
    def potential_range(self) -> float | None:
        """The largest difference of a design row's potentials at two parameters; None if unbounded."""


@dataclass(frozen=True, slots=True)
class Robust(SeparateEvaluation, Generic[M]):
    """The decorated ``model`` and ``beta``; subclasses define potentials and their derivatives."""

    model: M
    beta: float

    @property
    def potential_range(self) -> float | None:
        """``1 / beta``, because densities are relative to their largest value."""
        return 1 / self.beta

    @property
    def dimension(self) -> int:
        """As the model's."""
        return self.model.dimension

    @property
    def predictors(self) -> int:
        """As the model's."""
        return self.model.predictors

    @property
    def row_width(self) -> int:
        """As the model's."""
        return self.model.row_width

    @property
    def smallest_exact(self) -> int:
        """As the model's, because points are used with the model itself."""
        return self.model.smallest_exact

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the model's parameters."""
        return self.model.parameter_names(columns)

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold as the model."""
        return self.model.fold(x, y)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Recover design coordinates as the model."""
        return self.model.features(rows)

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw targets that follow the model."""
        return self.model.sample_targets(rng, x, theta)

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Draw first targets of points as the model."""
        return self.model.starting_targets(rng, x)

    def target_step(self, y: Array64) -> Array64:
        """Give the unit of steps in targets as the model."""
        return self.model.target_step(y)
