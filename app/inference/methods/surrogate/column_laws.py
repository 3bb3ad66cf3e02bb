"""The marginal laws of design columns: a posterior over a small grid of laws for each column.

Few rows may hold most of a column's variance: rows of a rare level, or of large amounts. Bounds take most from these
rows. So each column, standardised to mean 0 and variance 1, follows one law of a grid: a normal law; a share q of rows
at d deviations, on one side or both, with normal values elsewhere; or two values. The posterior weighs the laws by
noised sums of winsorised squares (:class:`app.inference.private_zone.queries.tails.TailSum`) and by bounds. Some
columns have two values by declaration.

Draws follow the posterior predictive law. So a rare level that noise may hide appears in the draws with its posterior
probability.
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
"""Equally probable values of a normal law, for means over it."""
_HEAVY_SHARES: Final = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.97)
"""Shares of the variance in far rows."""
_DISTANCES: Final = (3.5, 5, 7, 10, 14, 20, 30)
"""Distances of far rows from the mean, in deviations."""
_TWO_VALUED: Final = np.geomspace(0.0005, 0.5, 24)
"""Shares of rows with the rarer of two values."""
_NORMAL_MASS, _HEAVY_MASS, _TWO_MASS = 0.4, 0.3, 0.3
"""Prior probabilities of the three kinds of laws."""
_ROUNDING = 0.01
"""Error of the grid in mean winsorised squares."""
_ROOM: Final = 1.15
"""Largest distance of a law from the mean, over the distance of the column's bound."""
_IMPOSSIBLE: Final = 1e3
"""Subtracted from the log-likelihood of a law beyond the bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Laws:
    """The grid of L laws; all fields but ``winsorised_means`` are ``(L,)``.

    ``mass`` is the prior probability. A ``share`` of rows is at ``distance`` deviations from the mean, on the ``side``
    -1 or 1, or 0 for both. ``body`` and ``spread`` are mean and deviation of the other rows. ``winsorised_means``
    ``(3, L)`` are expected under each law: of squares within NEAR, squares within FAR, and values within NEAR.
    """

    mass: Array64
    share: Array64
    distance: Array64
    side: Array64
    body: Array64
    spread: Array64
    winsorised_means: Array64


@lru_cache(maxsize=1)
def laws() -> Laws:
    """List the grid of laws; each has mean 0 and variance 1."""
    heavy = [(s / d**2, d, a) for s in _HEAVY_SHARES for d in _DISTANCES for a in (-1, 0, 1)]
    two = [(q, np.sqrt((1 - q) / q), a) for q in _TWO_VALUED for a in (-1, 1)]
    share, distance, side = np.array([(0.0, 1.0, 0), *heavy, *two], dtype=np.float64).T
    mass = np.repeat([_NORMAL_MASS, _HEAVY_MASS / len(heavy), _TWO_MASS / len(two)], [1, len(heavy), len(two)])
    body = -share * side * distance / (1 - share)
    spread = np.sqrt(np.maximum((1 - share * distance**2 - (1 - share) * body**2) / (1 - share), 0))
    rest = body[:, None] + spread[:, None] * _QUANTILES

    def square(most: float) -> Array64:
        winsorised = np.minimum(rest**2, most**2).mean(axis=1)
        return np.asarray(share * np.minimum(distance, most) ** 2 + (1 - share) * winsorised)

    mean = share * side * np.minimum(distance, NEAR) + (1 - share) * np.clip(rest, -NEAR, NEAR).mean(axis=1)
    return Laws(mass, share, distance, side, body, spread, np.array([square(NEAR), square(FAR), mean]))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The estimates for k columns, in the design's units; fields are ``(k,)`` where no shape is given.

    ``mean``, ``deviation``, the ``least`` and the ``most`` value describe a column. ``error`` is the standard
    deviation of the noise in its variance. ``group`` numbers the categorical column of a declared indicator; -1: none.
    ``tails`` ``(3, k)`` are noised winsorised means (:func:`compute_winsorised_means`), and ``tails_noise`` ``(3,)`` is
    their noise. Both are None if they were not asked for.
    """

    mean: Array64
    deviation: Array64
    error: Array64
    least: Array64
    most: Array64
    group: NDArray[np.int64]
    tails: Array64 | None = None
    tails_noise: Array64 | None = None


def compute_winsorised_means(sums: Array64, count: float) -> Array64:
    """Convert winsorised sums over ``count`` rows to the means of :attr:`Laws.winsorised_means`.

    ``sums`` are the answer ``(3, k)`` of :class:`TailSum`, or its noise ``(3, 1)``. The result has the same shape.
    """
    return np.asarray(sums / count * np.array([NEAR**2, FAR**2, NEAR / OF_SIDES])[:, None])


def draw_columns(rng: np.random.Generator, columns: Columns, count: int) -> Array64:
    """Draw standardised columns ``(count, k)``, with mean 0.

    Columns are independent, except that the indicators of one category exclude each other.
    """
    draws = np.empty((count, len(columns.mean)))
    for column in range(len(columns.mean)):
        if columns.group[column] < 0:
            draws[:, column] = _draw_column(rng, columns, column, count)
    for number in np.unique(columns.group[columns.group >= 0]):
        members = np.flatnonzero(columns.group == number)
        least, width = columns.least[members], columns.most[members] - columns.least[members]
        edges = np.cumsum(np.clip((columns.mean[members] - least) / width, 0, 1))
        places = (rng.permutation(count) + 0.5) / count * max(1.0, float(edges[-1]))
        values = least + width * (np.searchsorted(edges, places)[:, None] == np.arange(len(members)))
        draws[:, members] = (values - columns.mean[members]) / np.maximum(columns.deviation[members], 1e-9)
    draws -= draws.mean(axis=0)
    return np.asarray(draws)


def _draw_column(rng: np.random.Generator, columns: Columns, column: int, count: int) -> Array64:
    """Draw a law for each row, then a value; uniform numbers are stratified, so that shares are nearly exact."""
    grid, weight = laws(), _compute_posterior(columns, column)
    chosen = np.searchsorted(np.cumsum(weight), (rng.permutation(count) + 0.5) / count)
    chosen = np.minimum(chosen, len(weight) - 1)
    far = (rng.permutation(count) + 0.5) / count < grid.share[chosen]
    side = np.where(grid.side[chosen] == 0, rng.choice([-1, 1], count), grid.side[chosen])
    rest = grid.body[chosen] + grid.spread[chosen] * rng.standard_normal(count)
    values = np.where(far, side * grid.distance[chosen], rest)
    return np.asarray((values - values.mean()) / max(float(values.std()), 1e-6))


def _compute_posterior(columns: Columns, column: int) -> Array64:
    """Compute the posterior probabilities ``(L,)`` of the laws of one column."""
    grid = laws()
    mean, deviation = columns.mean[column], columns.deviation[column]
    above, below = columns.most[column] - mean, mean - columns.least[column]
    room = np.select([grid.side > 0, grid.side < 0], [above, below], max(above, below))
    likelihood = np.log(grid.mass)
    likelihood -= _IMPOSSIBLE * ((grid.share > 0) & (grid.distance * deviation > _ROOM * room))
    if columns.tails is not None and columns.tails_noise is not None:
        likelihood += _compare_tails(columns, column)
    weight = np.exp(likelihood - likelihood.max())
    return np.asarray(weight / weight.sum())


def _compare_tails(columns: Columns, column: int) -> Array64:
    """Compute the log-likelihood ``(L,)`` of the winsorised means, up to a constant.

    It is normal. The error of the variance by which values are standardised is common to both squares, so their errors
    have a 2 x 2 covariance. The mean of values is independent of them.
    """
    assert columns.tails is not None
    assert columns.tails_noise is not None
    observed, (near, far, side) = columns.tails[:, column], laws().winsorised_means
    noise = np.hypot(columns.tails_noise, _ROUNDING)
    common = columns.error[column] / columns.deviation[column] ** 2
    off_near, off_far = observed[0] - near, observed[1] - far
    near_variance, far_variance = noise[0] ** 2 + (common * near) ** 2, noise[1] ** 2 + (common * far) ** 2
    both = common**2 * near * far
    determinant = near_variance * far_variance - both**2
    squares = off_near**2 * far_variance - 2 * off_near * off_far * both + off_far**2 * near_variance
    return np.asarray(-0.5 * (squares / determinant + np.log(determinant) + ((observed[2] - side) / noise[2]) ** 2))
