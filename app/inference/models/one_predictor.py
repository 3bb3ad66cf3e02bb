"""Common base of models with one linear predictor ``x'theta``."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.inference.core.model import SeparateEvaluation


@dataclass(frozen=True, slots=True)
class OnePredictor(SeparateEvaluation):
    """A model whose parameters are one coefficient for each of the design's ``width`` columns."""

    width: int

    @property
    def dimension(self) -> int:
        """One coefficient for each design column."""
        return self.width

    @property
    def predictors(self) -> int:
        """One."""
        return 1

    @property
    def row_width(self) -> int:
        """The design row."""
        return self.width

    @property
    def smallest_exact(self) -> int:
        """D points for the information; continuous targets make the gradient zero."""
        return self.dimension

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(columns)
