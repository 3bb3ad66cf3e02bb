"""The marginal laws of design columns: a posterior over a small grid of laws, column by column.

A column's variance may sit in few rows: those of a rare level, or of large amounts. They are the rows that bounds take
most from. So each column, standardised to mean 0 and variance 1, follows one of a few laws: a normal law; a share q of
rows at d deviations, on one side or both, and the rest normal; two values. Winsorised sums tell them apart
(:class:`app.inference.private_zone.queries.tails.TailSum`). Declared indicators have two values for certain.

Draws are from the posterior predictive law. So a level that noise leaves possible is there with the probability that
it has.
"""

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.private_zone.queries.tails import FAR, NEAR, OF_SIDES

_QUANTILES: Final = np.array([NormalDist().inv_cdf((i + 0.5) / 64) for i in range(64)])
_HEAVY_SHARES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.97)  # of the variance, beyond
_DISTANCES: Final = (3.5, 5, 7, 10, 14, 20, 30)  # deviations
_TWO_VALUED: Final = np.geomspace(0.0005, 0.5, 24)  # the share of the rarer value
_NORMAL_MASS, _HEAVY_MASS, _TWO_MASS = 0.4, 0.3, 0.3
_ROUNDING, _FLAG_ROUNDING = 0.01, 0.003
_ROOM: Final = 1.15  # times what bounds leave to a value
_ALIKE: Final = 0.35  # of the logarithm of a flag's share
_IMPOSSIBLE: Final = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """``(L,)`` each: prior mass, share q of rows at d deviations, and their side: -1, 1, or 0 for both.

    ``body`` and ``spread`` are mean and deviation of the other rows. ``told`` ``(3, L)`` is what winsorised sums say of
    each law: the mean squares within NEAR and FAR, and the mean within NEAR.
    """

    mass: Array64
    share: Array64
    distance: Array64
    side: Array64
    body: Array64
    spread: Array64
    told: Array64

    @property
    def two_valued(self) -> Array64:
        """Which laws have two values."""
        return np.asarray(self.spread < 1e-6)


@lru_cache(maxsize=1)
def laws() -> Laws:
    """List the grid of laws."""
    heavy = [(s / d**2, d, a) for s in _HEAVY_SHARES for d in _DISTANCES for a in (-1, 0, 1)]
    two = [(q, np.sqrt((1 - q) / q), a) for q in _TWO_VALUED for a in (-1, 1)]
    share, distance, side = np.array([(0.0, 1.0, 0), *heavy, *two], dtype=np.float64).T
    mass = np.repeat([_NORMAL_MASS, _HEAVY_MASS / len(heavy), _TWO_MASS / len(two)], [1, len(heavy), len(two)])
    body = -share * side * distance / (1 - share)
    spread = np.sqrt(np.maximum((1 - share * distance**2 - (1 - share) * body**2) / (1 - share), 0))
    rest = body[:, None] + spread[:, None] * _QUANTILES

    def square(most: float) -> Array64:
        within = np.minimum(rest**2, most**2).mean(axis=1)
        return np.asarray(share * np.minimum(distance, most) ** 2 + (1 - share) * within)

    mean = share * side * np.minimum(distance, NEAR) + (1 - share) * np.clip(rest, -NEAR, NEAR).mean(axis=1)
    return Laws(mass, share, distance, side, body, spread, np.array([square(NEAR), square(FAR), mean]))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is believed of k columns: ``mean``, ``deviation`` and ``least`` value, ``(k,)`` each; the most is 1.

    ``error`` ``(k,)`` is the noise in the variances. ``tails`` ``(3, k)`` are noised winsorised sums as means of
    columns, with noise ``tails_noise`` ``(3,)``; None if they were not asked for. ``group`` ``(k,)`` numbers the
    categorical column of a declared indicator, -1: none.
    """

    mean: Array64
    deviation: Array64
    error: Array64
    least: Array64
    group: NDArray[np.int64]
    tails: Array64 | None = None
    tails_noise: Array64 | None = None


def winsorised_means(sums: Array64, count: float) -> Array64:
    """Convert an answer ``(3, k)`` of :class:`TailSum`, or its noise ``(3, 1)``, to means of columns."""
    return np.asarray(sums / count * np.array([NEAR**2, FAR**2, NEAR / OF_SIDES])[:, None])


def draw_columns(rng: np.random.Generator, columns: Columns, count: int) -> Array64:
    """Draw standardised columns ``(count, k)``, independent but for indicators of one category."""
    found = np.empty((count, len(columns.mean)))
    for column in range(len(columns.mean)):
        if columns.group[column] < 0:
            found[:, column] = _draw_column(rng, columns, column, count)
    for number in np.unique(columns.group[columns.group >= 0]):
        members = np.flatnonzero(columns.group == number)
        edges = np.cumsum(np.clip(columns.mean[members], 0, 1))
        places = (rng.permutation(count) + 0.5) / count * max(1.0, float(edges[-1]))
        levels = np.searchsorted(edges, places)[:, None] == np.arange(len(members))
        found[:, members] = (levels - columns.mean[members]) / np.maximum(columns.deviation[members], 1e-9)
    found -= found.mean(axis=0)
    return np.asarray(found)


def _draw_column(rng: np.random.Generator, columns: Columns, column: int, count: int) -> Array64:
    grid, weight = laws(), _posterior(columns, column)
    chosen = np.searchsorted(np.cumsum(weight), (rng.permutation(count) + 0.5) / count)
    chosen = np.minimum(chosen, len(weight) - 1)
    far = (rng.permutation(count) + 0.5) / count < grid.share[chosen]
    side = np.where(grid.side[chosen] == 0, rng.choice([-1, 1], count), grid.side[chosen])
    rest = grid.body[chosen] + grid.spread[chosen] * rng.standard_normal(count)
    values = np.where(far, side * grid.distance[chosen], rest)
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-6))


def _posterior(columns: Columns, column: int) -> Array64:
    """The probabilities ``(L,)`` of the laws of one column."""
    grid = laws()
    mean, deviation, least = columns.mean[column], columns.deviation[column], columns.least[column]
    above, below = 1 - mean, mean - least
    room = np.select([grid.side > 0, grid.side < 0], [above, below], max(above, below))
    likelihood = np.log(grid.mass)
    likelihood -= _IMPOSSIBLE * ((grid.share > 0) & (grid.distance * deviation > _ROOM * room))
    if columns.tails is not None and columns.tails_noise is not None:
        likelihood += _by_tails(columns, column)
    for low in (0.0, -1.0):
        likelihood += _as_flag(columns, column, low)
    weight = np.exp(likelihood - likelihood.max())
    return np.asarray(weight / weight.sum())


def _by_tails(columns: Columns, column: int) -> Array64:
    """The log-likelihood ``(L,)`` of the winsorised sums; both squares share the error of the variance."""
    assert columns.tails is not None
    assert columns.tails_noise is not None
    told, (near, far, side) = columns.tails[:, column], laws().told
    noise = np.hypot(columns.tails_noise, _ROUNDING)
    common = columns.error[column] / columns.deviation[column] ** 2
    off_near, off_far = told[0] - near, told[1] - far
    near_variance, far_variance = noise[0] ** 2 + (common * near) ** 2, noise[1] ** 2 + (common * far) ** 2
    both = common**2 * near * far
    determinant = near_variance * far_variance - both**2
    squares = off_near**2 * far_variance - 2 * off_near * off_far * both + off_far**2 * near_variance
    return np.asarray(-0.5 * (squares / determinant + np.log(determinant) + ((told[2] - side) / noise[2]) ** 2))


def _as_flag(columns: Columns, column: int, low: float) -> Array64:
    """The log of a Bayes factor ``(L,)``: values ``low`` and 1, whose mean tells their variance."""
    grid, mean = laws(), columns.mean[column]
    share = float(np.clip((mean - low) / (1 - low), 1e-4, 1 - 1e-4))
    variance = share * (1 - share) * (1 - low) ** 2
    error = columns.error[column] + _FLAG_ROUNDING * variance
    off = (columns.deviation[column] ** 2 - variance) / error
    factor = np.exp(-0.5 * off**2) * 2 * variance / error
    alike = np.abs(np.log(grid.share / min(share, 1 - share) + 1e-9)) < _ALIKE
    return np.where(alike & (grid.side == np.sign(0.5 - share)) & grid.two_valued, np.log1p(factor), 0.0)
