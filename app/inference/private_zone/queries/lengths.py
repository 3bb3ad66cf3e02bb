"""Histograms of the lengths of units' contributions to moments."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, raise_clip
from app.inference.private_zone.queries.blocks import iterate_unit_blocks, sum_over_units
from app.inference.private_zone.queries.moments import Coordinates, append_squares

BINS = 48
"""The number of bins; each bin halves the squared length."""

_MANTISSA_BITS = 52
"""Bits of the mantissa in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class LengthHistogram(Coordinates):
    """A histogram of units' squared lengths, with :data:`BINS` bins that halve.

    Bin b counts the units with a squared length in ``[2**-(b + 1), 2**-b) * largest``. The length is that of ``z``, or
    with ``squares`` that of ``(1, z, z * z)``, summed over the unit's rows. Longer units count in the first bin,
    shorter ones in the last.
    """

    largest: float
    squares: bool
    kind: ClassVar[str] = "length_histogram"

    def check(self, model: Model, design: Design) -> None:
        """Check the coordinates, and that the largest squared length is finite."""
        Coordinates.check(self, model, design)
        raise_clip(self.largest)

    @property
    def length(self) -> int:
        """One count for each bin."""
        return BINS

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Add K to one bin for every unit, as :meth:`app.inference.core.query.Query.sum`."""
        counts = np.zeros(BINS, dtype=np.int64)
        largest, bins = np.float64(raise_clip(self.largest)), np.arange(BINS, dtype=np.int8)[:, None]
        with np.errstate(all="ignore"):
            for block, there in iterate_unit_blocks(rows, present, rows_per_unit, self.width):
                values = self.coordinates(model, block)[: len(there)]
                sums, units = sum_over_units(append_squares(values) if self.squares else values, there, rows_per_unit)
                squared = np.vecdot(sums, sums).astype(np.float64)
                is_counted = units & np.isfinite(squared)
                counts += np.count_nonzero((_find_bins(squared, largest) == bins) & is_counted, axis=1)
        return counts * GRID

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every count."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to counts of units, ``(BINS,)``."""
        return noised.astype(np.float64) / GRID


def _find_bins(squared: Array64, largest: np.float64) -> NDArray[np.int8]:
    """Compute the bin ``ceil(log2(largest / squared)) - 1``, or the nearest one.

    ``squared`` must not be negative. The bits of positive floating-point numbers have the numbers' order, with the
    exponent above the mantissa. So the upper part of a difference of bits is the exact floor of the logarithm. No step
    depends on a value (W14).
    """
    halvings = np.negative((squared.view(np.int64) - largest.view(np.int64)) >> _MANTISSA_BITS)
    return np.asarray(np.clip(halvings - 1, 0, BINS - 1), dtype=np.int8)
