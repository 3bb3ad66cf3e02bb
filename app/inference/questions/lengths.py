"""How long the rows are that moments sum."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import GRID, admissible_clip
from app.inference.protocol import Array32, Array64, Integers, Model
from app.inference.questions.blocks import over_units, unit_blocks
from app.inference.questions.moments import Coordinates, with_squares

BINS = 48
"""Halvings of a squared length that are told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class LengthHistogram(Coordinates):
    """How many units have a squared length in ``[2**-(b + 1), 2**-b) * largest``, for b below :data:`BINS`.

    The length is that of ``z``, or with ``squares`` that of ``(1, z, z * z)``, summed over the unit's rows. Longer
    ones count as the first bin, shorter ones as the last.
    """

    largest: float
    squares: bool
    kind: ClassVar[str] = "length_histogram"

    def check(self, model: Model, design: Design) -> None:
        """As that of the base, and the largest squared length is finite."""
        Coordinates.check(self, model, design)
        admissible_clip(self.largest)

    @property
    def length(self) -> int:
        """One count for each bin."""
        return BINS

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """K in one bin for every unit: see :meth:`app.inference.protocol.Question.sum`."""
        counts = np.zeros(BINS + 1, dtype=np.int64)
        edges = admissible_clip(self.largest) * 2.0 ** -np.arange(BINS - 1, 0, -1)
        with np.errstate(all="ignore"):
            for block, there in unit_blocks(rows, present, rows_per_unit, self.width):
                values = self.coordinates(model, block)[: len(there)]
                sums, units = over_units(with_squares(values) if self.squares else values, there, rows_per_unit)
                squared = np.vecdot(sums, sums).astype(np.float64)
                place = BINS - 1 - np.searchsorted(edges, squared, side="right")
                place[~(units & np.isfinite(squared))] = BINS
                counts += np.bincount(place, minlength=BINS + 1)
        return counts[:BINS] * GRID

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every count."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(BINS,)``, in units."""
        return noised.astype(np.float64) / GRID
