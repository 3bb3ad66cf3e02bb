"""What models with one linear predictor ``x'theta`` share."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.inference.core.model import SeparateEvaluation


@dataclass(frozen=True, slots=True)
class OnePredictor(SeparateEvaluation):
    """A coefficient for each of the design's ``width`` columns, and nothing else."""

    width: int

    @property
    def dimension(self) -> int:
        """One coefficient a design column."""
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
        """Points span an information of rank D, and targets that are free bring the gradient to zero."""
        return self.dimension

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns' own names."""
        return tuple(columns)
