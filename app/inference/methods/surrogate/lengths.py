"""Noised histograms of lengths, and the units and clipping norms that follow from them."""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.private_zone.queries.lengths import BINS

_LEAST_SCALE, _MOST_SCALE = 2.0**-20, 1e6
_SCALE_LENGTHS, _CLIP_LENGTHS = 2.0, 2.0
"""A column's unit and a clipping norm, over a root mean square; few rows are beyond them."""
_DEVIATIONS = 3.0
"""Deviations of noise that a bin must exceed to count."""


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """A noised histogram of squared lengths.

    Bin b of ``counts`` holds squared lengths in ``[2**-(b + 1), 2**-b) * largest``. ``noise`` is the standard deviation
    of the noise in a bin.
    """

    counts: Array64
    largest: float
    noise: float

    def mean_power(self, power: int) -> float:
        """Compute the mean of squared lengths to ``power``.

        It is the largest possible value if no bin exceeds its noise.
        """
        kept = np.where(self.counts > _DEVIATIONS * self.noise, self.counts, 0.0)
        squares = self.largest * 2.0 ** -np.arange(BINS) / np.sqrt(2)
        total = kept.sum()
        return float(kept @ squares**power / total) if total > 0 else self.largest**power

    @property
    def root_mean_square(self) -> float:
        """The root mean square of lengths."""
        return float(np.sqrt(self.mean_power(1)))


def choose_scale(length: float, columns: int) -> float:
    """Choose the common unit of columns, from the root mean square ``length`` of rows."""
    return float(np.clip(_SCALE_LENGTHS * length / np.sqrt(max(columns, 1)), _LEAST_SCALE, _MOST_SCALE))


def choose_clip(length: float) -> float:
    """Choose the clipping norm of contributions whose root mean square is ``length``."""
    return _CLIP_LENGTHS * max(length, 1.0)
