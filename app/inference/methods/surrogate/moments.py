"""Lengths of rows and moments of columns, from noised answers and declared facts.

A histogram of lengths gives units and clipping norms for the sum of moments after it. Declarations are certain.
A column of two values follows from its mean. Two indicators of a category exclude each other, so their product is 0.
These facts cost nothing.
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
"""A column's unit and a clipping norm, over a root mean square. A squared norm is 1 for the count, and 4 for values."""
_NONE = -1
"""The group of a column without two values."""
_LEAST_SHARE = 1e-4
"""Least share of rows at a level."""
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

    ``group`` ``(k,)`` numbers the feature of a column with two values; it is -1 for other columns. The values are 1 and
    ``least`` ``(k,)``: 0 for indicators of a category, -1 for a binary column. A row has at most one level.
    """

    group: NDArray[np.int64]
    least: Array64

    @property
    def features(self) -> list[NDArray[np.int64]]:
        """The columns of each feature with two values."""
        return [np.flatnonzero(self.group == number) for number in np.unique(self.group) if number != _NONE]


def read_declared(design: Design) -> Declared:
    """Read the declared facts about the columns of ``design``."""
    group = [i if each.values.two_valued else _NONE for i, each in enumerate(design.encoders) for _ in each.columns]
    least = [low for each in design.encoders for low in each.values.lower]
    return Declared(np.array(group, dtype=np.int64), np.array(least, dtype=np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The number of rows, and moments of their columns.

    ``mean`` is ``(k,)``, ``covariance`` ``(k, k)``. ``error`` ``(k,)`` is the noise in the variances.
    """

    count: float
    mean: Array64
    covariance: Array64
    error: Array64


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Noised sums of columns and their squares.

    ``answer`` ``(1 + 2k,)`` is of ``(1, z, z * z)`` over rows, with ``z = (x - centre) / scale``. ``noise`` is the
    standard deviation of each sum; that of the count is ``noise / weight``. ``weight`` is that of a row in the count.
    ``centre`` is ``(k,)``, or one number for all columns. ``clip`` is the clipping norm of a row.
    """

    answer: Array64
    scale: float
    noise: float
    declared: Declared
    centre: Array64 | float
    weight: float
    clip: float

    @property
    def count_noise(self) -> float:
        """The standard deviation of the noise in the count."""
        return self.noise / self.weight

    def estimate(self, places: int) -> Population:
        """Estimate the rows in ``places``, at least :attr:`Tuning.least_count` of them.

        Means are shrunk towards the centre by their noise. Variances are at least their noise: with too large a
        variance, a query has more noise; with too small a one, it clips the rows that it measures. Columns are
        uncorrelated, except for indicators that exclude each other.
        """
        count = float(np.clip(self.answer[0], max(np.multiply(TUNING.least_count, (self.count_noise, places))), places))
        means, error = self.means(count)
        moved, errors = _shrink(means - self.centre, error), np.full(len(means), self.scale**2 * self.noise / count)
        square = self.scale**2 * self.answer[1 + len(means) :] / count
        mean, covariance = self.centre + moved, np.diag(np.maximum(square - moved**2, errors))
        shares, noise = self._shares(count)
        for members in self.declared.features:
            low, width = self.declared.least[members], 1 - self.declared.least[members]
            seen = leave_reference(shares[members], noise[members])
            mean[members], errors[members] = low + width * seen, width**2 * noise[members]
            covariance[np.ix_(members, members)] = np.outer(width, width) * (np.diag(seen) - np.outer(seen, seen))
        return Population(count, mean, covariance, errors)

    def means(self, count: float) -> tuple[Array64, float]:
        """Compute the means of ``count`` rows, ``(k,)``, and the noise in each."""
        sums = self.answer[1 : 1 + len(self.declared.group)]
        return self.centre + self.scale * sums / count, self.scale * self.noise / count

    def _shares(self, count: float) -> tuple[Array64, Array64]:
        """Compute shares of the value 1, and their noise, ``(k,)`` each.

        They are for columns of two values. Both moments show the share. Rows of a rare value may be so long that the
        clip shortens them. It does so here, too; their other coordinates have the root mean square of all rows.
        """
        low = self.declared.least
        z = (np.array([low, np.ones(len(low))]) - self.centre) / self.scale
        parts = np.array([z, z**2])  # (moments, values, k)
        length = np.sqrt((self.clip / CLIP_LENGTHS) ** 2 + np.square(parts).sum(axis=0))
        parts *= np.minimum(1, self.clip / length)
        slope = parts[:, 1] - parts[:, 0]
        certainty = np.maximum(np.square(slope).sum(axis=0), _TINY)
        rest = self.answer[1:].reshape(2, -1) / count - parts[:, 0]
        usual, noise = np.clip((self.centre - low) / (1 - low), 0, 1), self.noise / count / np.sqrt(certainty)
        return usual + _shrink(np.sum(slope * rest, axis=0) / certainty - usual, noise), noise


def _shrink(means: Array64, error: Array64 | float) -> Array64:
    """Shrink ``means`` ``(k,)`` to zero where they hardly exceed their noise."""
    return means * (np.maximum(0, means**2 - np.square(error)) / np.maximum(means**2, _TINY))


def choose_centre(answer: Array64, scale: float, noise: float, weight: float) -> Array64:
    """Choose the origin ``(k,)`` of columns.

    ``answer`` ``(1 + k,)`` is a sum of ``(1, x / scale)``. Its noise has the standard deviation ``noise``, divided by
    ``weight`` in the count.
    """
    count = max(float(answer[0]), TUNING.least_count[0] * noise / weight, 1.0)
    return round_to_grid(_shrink(scale * answer[1:] / count, scale * noise / count))


def round_to_grid(means: Array64) -> Array64:
    """Round ``means`` ``(k,)`` to the nearest origins that a query accepts."""
    return np.asarray(np.rint(np.clip(means, -1.0, 1.0) * CENTRE_GRID) / CENTRE_GRID)


def leave_reference(shares: Array64, error: Array64) -> Array64:
    """Raise shares of levels to their ``error``, and reserve as much for the reference.

    The shares are ``(k,)``, before and after. The reference level has no indicator. An indicator that is nearly
    constant would have hardly any variance in the belief. A metric by this variance would clip the very rows that show
    the real one.
    """
    least = np.clip(error, _LEAST_SHARE, 1 / (2 * (len(shares) + 1)))
    raised = np.maximum(shares, least)
    return np.asarray(raised * min(1.0, (1 - float(least.max())) / float(raised.sum())))
