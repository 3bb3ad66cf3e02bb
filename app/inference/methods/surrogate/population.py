"""What is known of the design rows: their number, means and second moments, from noised answers alone.

A metric for whole queries needs a scale for every column, and columns whose mean is large against their spread need
to be centred (one-hot and bounded columns are nearly collinear with the intercept). Both follow from one noised sum of
``(1, z, z * z)``, at a price that grows as sqrt(p), not as p.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.surrogate.tails import Tails
from app.inference.private_zone.queries.lengths import BINS

_LEAST_SCALE, _MOST_SCALE = 2.0**-20, 1e6
_SCALE_LENGTHS, _CLIP_LENGTHS = 2.0, 2.0
"""Times a root mean square: a column's scale, and the bound of contributions, so that few rows are clipped."""
_LEAST_VARIANCE = 1e-30
LEAST_COUNT = 0.01
"""Of the places for rows: fewer are never believed, so that nothing is divided by a count that is noise."""


@dataclass(frozen=True)
class Population:
    """``count`` design rows of mean ``mean`` ``(p,)`` and covariance ``covariance`` ``(p, p)``.

    The last coordinate is the intercept where there is one, of mean 1 and variance 0. Rows are normal, or have
    ``tails``; ``unknown_levels``: whether a column may be a rare level that is not known well, or nobody asked;
    ``hiding``: which columns may be one that noise hides, and ``unseen``: those of them that matrices have room for.
    Columns lie between ``least``, 0 or -1, and 1.
    """

    count: float
    mean: Array64
    covariance: Array64
    tails: Tails | None = None
    unknown_levels: bool = True
    least: Array64 | float = -1.0
    hiding: NDArray[np.bool_] | bool = False
    unseen: NDArray[np.bool_] | bool = False

    @property
    def second_moments(self) -> Array64:
        """``E[x x']``, ``(p, p)``."""
        return self.covariance + np.outer(self.mean, self.mean)

    def spread(self, step: Array64, blocks: int) -> float:
        """Root mean square over rows (and ``blocks`` linear predictors) of the predictors' change by ``step``."""
        width = len(self.mean)
        each = step[: blocks * width].reshape(blocks, width)
        return float(np.sqrt(max(np.einsum("ij,jk,ik->", each, self.second_moments, each) / blocks, 0.0)))

    @cached_property
    def tailed_rows(self) -> Array64 | None:
        """``(n, p)`` design rows of this mean and covariance whose columns have tails; None: they are normal."""
        if self.tails is None:
            return None
        deviation = np.sqrt(np.maximum(self.covariance.diagonal()[:-1], _LEAST_VARIANCE))
        values, vectors = np.linalg.eigh(self.covariance[:-1, :-1] / np.outer(deviation, deviation))
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return np.asarray(self.mean + np.pad((self.tails.draws @ root) * deviation, ((0, 0), (0, 1))))

    @property
    def furthest(self) -> Array64:
        """The bounds of columns ``(p - 1,)`` that are further from their means."""
        mean = self.mean[:-1]
        return np.asarray(np.where(mean - self.least > 1.0 - mean, self.least, 1.0))

    @property
    def level_rows(self) -> Array64:
        """``(n, p)`` design rows of rare levels that are known, then of columns at a bound that may be one unseen."""
        mean = self.mean[:-1]
        rows = np.where(np.eye(len(mean), dtype=bool), self.furthest, mean)[np.broadcast_to(self.unseen, mean.shape)]
        if self.tails is not None:
            least = np.broadcast_to(self.least, mean.shape)
            known = self.tails.level_rows(mean, self.covariance[:-1, :-1], least, np.ones_like(mean))
            rows = np.vstack([known, rows])
        return np.pad(rows, ((0, 0), (0, 1)), constant_values=1.0)

    @property
    def rarer_values(self) -> tuple[Array64, NDArray[np.bool_]]:
        """``(n, p)`` design rows at columns' rarer values, all others at their means; and which are known, ``(n,)``.

        The others are of columns that may have but two values, as far as noise tells.
        """
        if self.tails is None:
            return np.zeros((0, len(self.mean))), np.zeros(0, dtype=np.bool_)
        mean, deviation = self.mean[:-1], np.sqrt(np.maximum(self.covariance.diagonal()[:-1], 0))
        rows, known = self.tails.rarer_values(mean, deviation, np.broadcast_to(self.least, mean.shape))
        return np.pad(rows, ((0, 0), (0, 1)), constant_values=1.0), known

    def rows(self, rng: np.random.Generator, n: int) -> Array64:
        """``(n, p)`` normal design rows of exactly this mean and covariance; n is above p."""
        normal = rng.standard_normal((n, len(self.mean)))
        normal -= normal.mean(axis=0)
        normal = np.sqrt(n) * np.linalg.qr(normal)[0]
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray(self.mean + (normal * np.sqrt(np.maximum(values, 0))) @ vectors.T)

    def with_tails(self, tails: Tails | None) -> "Population":
        """The rows of which columns' tails are as these say."""
        unknown = tails is not None and bool(np.any(tails.levels)) and not tails.clear
        return replace(self, tails=tails, unknown_levels=unknown)

    def with_second_moments(self, moments: Array64) -> "Population":
        """Units with ``E[x x']`` proportional to ``moments`` ``(p, p)``, whose last column is the intercept's.

        The covariance is a Schur complement, so that directions of hardly any variance keep what is known of them.
        """
        level = max(float(moments[-1, -1]), LEAST_COUNT)
        mean = np.append(moments[:-1, -1] / level, 1.0)
        covariance = moments / level - np.outer(mean, mean)
        covariance[-1], covariance[:, -1] = 0, 0
        return replace(self, count=self.count * level, mean=mean, covariance=0.5 * (covariance + covariance.T))


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """A noised histogram ``counts`` of squared lengths in ``[2**-(b + 1), 2**-b) * largest``, bin by bin."""

    counts: Array64
    largest: float
    noise: float


def root_mean_square(lengths: Lengths) -> float:
    """Of lengths; bins that are mostly noise are left out."""
    return float(np.sqrt(mean_power(lengths, 1)))


def mean_power(lengths: Lengths, power: int) -> float:
    """The mean of squared lengths to that power; that of the largest where no bin stands out of its noise."""
    kept = np.where(lengths.counts > 3 * lengths.noise, lengths.counts, 0.0)
    squares = lengths.largest * 2.0 ** -np.arange(BINS) / np.sqrt(2)
    total = kept.sum()
    return float(kept @ squares**power / total) if total > 0 else lengths.largest**power


def scale_of(length: float, columns: int) -> float:
    """A common scale of the columns, from the root mean square length of rows; any serves where there are none."""
    return float(np.clip(_SCALE_LENGTHS * length / np.sqrt(max(columns, 1)), _LEAST_SCALE, _MOST_SCALE))


def clip_of(length: float) -> float:
    """The clip of ``(1, z)`` or ``(1, z, z * z)``, from the root mean square of its length."""
    return _CLIP_LENGTHS * max(length, 1.0)
