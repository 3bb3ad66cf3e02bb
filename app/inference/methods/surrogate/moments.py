"""Lengths of rows and moments of columns, from noised answers and declared facts.

A histogram of lengths gives units and clipping norms for the sum of moments after it. Declarations are certain.
Indicators equal their squares. Two indicators of a category exclude each other, so their product is 0. The square of a
column of -1 and 1 is 1. These facts hold for clipped rows, too, and cost nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array64
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.private_zone.queries.lengths import BINS
from app.inference.private_zone.queries.moments import CENTRE_GRID

_LEAST_SCALE, _MOST_SCALE = 2.0**-20, 1e6
_SCALE_LENGTHS, CLIP_LENGTHS = 2.0, 5**0.5
"""A column's unit and a clipping norm, over a root mean square. Its square is 1 for the weight, and 4 for values."""
_NONE = -1
"""The group of a column that is no indicator."""
_TINY = float(np.finfo(np.float64).tiny)


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
        kept = np.where(self.counts > TUNING.signal * self.noise, self.counts, 0.0)
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
    return CLIP_LENGTHS * max(length, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """Declared facts about k design columns, the intercept left out.

    ``group`` ``(k,)`` numbers the category of an indicator, 0 or 1; it is -1 for other columns. A row has at most one
    level of a category. ``signs`` ``(k,)``: the column is -1 or 1 in every row.
    """

    group: NDArray[np.int64]
    signs: NDArray[np.bool_]

    @property
    def indicators(self) -> NDArray[np.bool_]:
        """Which columns are 0 or 1, ``(k,)``."""
        return np.asarray(self.group != _NONE)

    @property
    def exclusive(self) -> NDArray[np.bool_]:
        """Which pairs of columns are different indicators of one category, ``(k, k)``."""
        same = np.equal.outer(self.group, self.group) & self.indicators
        return np.asarray(same & ~np.eye(len(self.group), dtype=np.bool_))

    def limit_shares(self, shares: Array64) -> Array64:
        """Limit indicators' shares ``(k,)`` to [0, 1], their sum in a category to 1."""
        limited = np.where(self.indicators, np.clip(shares, 0.0, 1.0), shares)
        for number in np.unique(self.group[self.indicators]):
            members = self.group == number
            limited[members] /= max(1.0, float(limited[members].sum()))
        return limited


def read_declared(design: Design) -> Declared:
    """Read the declared facts about the columns of ``design``."""
    group = [i if each.values.indicators else _NONE for i, each in enumerate(design.encoders) for _ in each.columns]
    signs = [each.values.signs for each in design.encoders for _ in each.columns]
    return Declared(np.array(group, dtype=np.int64), np.array(signs, dtype=np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The number of rows, and moments of their columns.

    ``mean`` is ``(k,)``, ``covariance`` ``(k, k)``.
    """

    count: float
    mean: Array64
    covariance: Array64


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Noised sums of columns and their squares.

    ``answer`` ``(1 + 2k,)`` is of ``(1, z, z * z)`` over rows, with ``z = (x - centre) / scale``. ``noise`` is the
    standard deviation of each sum; that of the count is ``noise / weight``. ``weight`` is that of a row in the count.
    ``centre`` is ``(k,)``, or one number for all columns.
    """

    answer: Array64
    scale: float
    noise: float
    known: Declared
    centre: Array64 | float
    weight: float

    @property
    def count_noise(self) -> float:
        """The standard deviation of the noise in the count."""
        return self.noise / self.weight

    def estimate(self, places: int, *, least: float) -> Population:
        """Estimate the rows in ``places``, at least ``least * places`` of them.

        Means are shrunk towards the centre by their noise, and indicators' shares towards zero. Variances are at least
        their noise: with too large a variance, a query has more noise; with too small a one, it clips the rows that it
        measures. Columns are uncorrelated, except for indicators that exclude each other.
        """
        count = float(np.clip(self.answer[0], min(max(2 * self.count_noise, least * places), places), places))
        mean, variance, error = self._columns(count)
        covariance = np.diag(np.maximum(variance, error))
        covariance -= np.where(self.known.exclusive, np.outer(mean, mean), 0.0)
        return Population(count, mean, covariance)

    def means(self, count: float) -> tuple[Array64, float]:
        """Compute the means of ``count`` rows, ``(k,)``, and the noise in each."""
        sums = self.answer[1 : 1 + len(self.known.group)]
        return self.centre + self.scale * sums / count, self.scale * self.noise / count

    def _columns(self, count: float) -> tuple[Array64, Array64, Array64]:
        """Compute means, variances and the noise in variances of the columns, each ``(k,)``."""
        known, (means, error) = self.known, self.means(count)
        square = self.scale**2 * self.answer[1 + len(means) :] / count
        moved = _shrink(means - self.centre, error)
        shares, shares_error = self._shares(means, square)
        seen = _shrink(shares, shares_error / count)
        mean = np.where(known.indicators, seen, self.centre + moved)
        return (
            mean,
            np.select([known.indicators, known.signs], [shares - seen**2, 1 - mean**2], square - moved**2),
            np.select(
                [known.indicators, known.signs],
                [shares_error / count, min(2 * error, 1.0)],
                self.scale**2 * self.noise / count,
            ),
        )

    def _shares(self, means: Array64, square: Array64) -> tuple[Array64, Array64]:
        """Compute indicators' shares, and their noise times the count, ``(k,)`` each.

        Both moments of an indicator are estimates of its share.
        """
        one, other = 1 / self.scale**2, (1 - 2 * self.centre) / self.scale**4  # inverse variances, of one noise
        certainty = one + other * (1 - 2 * self.centre)
        shares = (one * means + other * (square - np.square(self.centre))) / certainty
        return self.known.limit_shares(shares), self.noise / np.sqrt(certainty)


def _shrink(means: Array64, error: Array64 | float) -> Array64:
    """Shrink ``means`` ``(k,)`` to zero where they hardly exceed their noise."""
    return means * (np.maximum(0, means**2 - np.square(error)) / np.maximum(means**2, _TINY))


def choose_centre(answer: Array64, scale: float, noise: float, weight: float) -> Array64:
    """Choose the origin ``(k,)`` of columns.

    ``answer`` ``(1 + k,)`` is a sum of ``(1, x / scale)``. Its noise has the standard deviation ``noise``, divided by
    ``weight`` in the count.
    """
    count = max(float(answer[0]), 2 * noise / weight, 1.0)
    return round_to_grid(_shrink(scale * answer[1:] / count, scale * noise / count))


def round_to_grid(means: Array64) -> Array64:
    """Round ``means`` ``(k,)`` to the nearest origins that a query accepts."""
    return np.asarray(np.rint(np.clip(means, -1.0, 1.0) * CENTRE_GRID) / CENTRE_GRID)
