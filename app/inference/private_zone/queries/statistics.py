"""Clipped sums of the statistics of a conjugate-exponential model."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers
from app.inference.core.statistics import STATISTIC_SUM, RowEncoder, Statistics
from app.inference.private_zone.mechanisms import GRID, BadQuery
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum


@dataclass(frozen=True, slots=True, eq=False)
class StatisticSum:
    """The sum ``sum_b clip_1(s_b / units)`` of units' statistics.

    ``s_b`` is the sum over the rows of unit b. ``moving`` selects the statistics that depend on ``belief``, or the
    fixed ones. Rows are cut to length ``radius``. ``units`` ``(length,)`` are the units of the values. The joint norm
    is clipped to 1 in these units, so the sensitivity does not depend on the bounds of the statistics. The answer is
    ``(length,)`` in real units.
    """

    belief: Array64
    units: Array64
    radius: float
    moving: bool
    kind: ClassVar[str] = STATISTIC_SUM

    @property
    def length(self) -> int:
        """The number of statistics."""
        return len(self.units)

    def check(self, model: Statistics, design: RowEncoder) -> None:
        """Raise BadQuery for arrays that are not finite or do not fit the model.

        Units and the radius must be positive.
        """
        check_array(self.belief, model.belief_shape, "belief")
        blocks = model.list_blocks(self.radius, moving=self.moving)
        check_array(self.units, (sum(block.length for block in blocks),), "units")
        if not (np.all(self.units > 0) and 0 < self.radius <= model.largest_radius):
            raise BadQuery("units and the radius must be positive, and the radius at most the largest")

    def sum(self, model: Statistics, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        inverse = (1 / self.units).astype(np.float32)

        def contribute(block: Array32) -> Array32:
            values = model.contribute(block, self.belief, self.radius, moving=self.moving)
            values *= inverse
            return values

        return compute_clipped_sum(contribute, rows, present, rows_per_unit, length=self.length, clip=1.0)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value, in its unit."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(length,)`` real units."""
        return noised.astype(np.float64) * (self.units / GRID)
