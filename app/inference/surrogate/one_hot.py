"""Neighbouring columns of which every row has exactly one: a category's indicators that nobody declared as such.

Nothing is known then of the direction in which all of them rise and the intercept falls, while columns that do not
exclude each other would tell most there: a belief that is off by thousands spoils every question in its metric. Shares
that sum to one are a hint, and the first matrix is the evidence: in that direction it says nothing. Which columns
belong together is a posterior over all ways to cut the columns into runs (forward and backward sums), since where runs
of rare levels end is not to be seen; products of two columns vanish as far as they are likely to be in one.
"""

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.protocol import Array64
from app.inference.surrogate.answer import Answer
from app.inference.surrogate.memory import begun
from app.inference.surrogate.moments import Indicators
from app.inference.surrogate.opening import with_tails
from app.inference.surrogate.population import Population
from app.inference.surrogate.population_information import information_of_population
from app.inference.surrogate.state import State

_ODDS: Final = 0.02
"""That neighbours which could be a category's indicators are one, before anything is known of their shares."""
_OTHERWISE: Final = 0.5
"""What a matrix sees along the direction if they are none, at least, over what columns would tell by themselves."""
_FURTHEST: Final = 4.0
"""Deviations from one of a sum of shares, beyond which it is none."""
_LEAST: Final = 0.5
"""The probability from which it is worth to begin anew, which leaves out what the first matrix said."""
_ROUNDED: Final = 0.0005
"""By how much a sum is off where there is no noise."""
_TINY = 1e-12


class Runs(NamedTuple):
    """Columns from ``low`` up to ``high``, ``(n,)`` each, and ``weight``: log odds that they are a category's."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    weight: Array64


def seen_as_one_hot(rng: np.random.Generator, state: State, answer: Answer) -> State:
    """With the belief begun anew, after the first matrix, where columns are likely to be a category's indicators."""
    memory, moments = state.memory, state.moments
    if memory is None or moments is None or state.setup.curvature is None:
        return state
    found = moments.indicators(state.rows)
    same = together(_runs(found, answer, memory.first - answer.prior), len(found.share))
    likely = same.diagonal()
    if not np.any(likely > _LEAST):
        return state
    state = with_tails(rng, replace(state, population=believed(state.population, found, same)))
    information = information_of_population(rng, state.setup, state.population, state.theta)
    return replace(state, memory=begun(information), information=information)


def together(runs: Runs, columns: int) -> Array64:
    """``(k, k)``: how likely two columns are in one run, by all ways to choose runs that do not overlap."""
    forward, backward = np.zeros(columns + 1), np.zeros(columns + 1)
    for end in range(1, columns + 1):
        last = runs.high == end
        forward[end] = np.logaddexp.reduce([forward[end - 1], *(forward[runs.low[last]] + runs.weight[last])])
    for start in range(columns - 1, -1, -1):
        first = runs.low == start
        backward[start] = np.logaddexp.reduce([backward[start + 1], *(backward[runs.high[first]] + runs.weight[first])])
    chances = np.exp(forward[runs.low] + runs.weight + backward[runs.high] - forward[columns])
    same = np.zeros((columns, columns))
    for low, high, chance in zip(runs.low, runs.high, chances, strict=True):
        same[low:high, low:high] += chance
    return same


def _runs(found: Indicators, answer: Answer, expected: Array64) -> Runs:
    """All runs whose shares sum to about one, with the odds by that sum and by what the matrix says of it."""
    sums, squares = (np.append(0.0, np.cumsum(each)) for each in (found.share, np.square(found.error)))
    kept: list[tuple[int, int, float]] = []
    for low in np.flatnonzero(found.possible):
        ends = np.arange(low + 2, _end(found, int(low)) + 1)
        off = np.sqrt(squares[ends] - squares[low]) + _ROUNDED
        apart = (sums[ends] - sums[low] - 1) / off
        for place in np.flatnonzero(np.abs(apart) < _FURTHEST):
            by_sum = np.log(_ODDS / (np.sqrt(2 * np.pi) * off[place])) - 0.5 * apart[place] ** 2
            weight = by_sum + _evidence(found.direction(int(low), int(ends[place])), answer, expected)
            kept.append((int(low), int(ends[place]), float(weight)))
    lows, highs, weights = np.array(kept).reshape(-1, 3).T
    return Runs(lows.astype(np.int64), highs.astype(np.int64), weights)


def _end(found: Indicators, low: int) -> int:
    """Of the longest run from ``low`` of columns that may be indicators, all of one coding."""
    alike = found.possible & (found.step == found.step[low])
    others = np.flatnonzero(~alike[low:])
    return low + int(others[0]) if len(others) else len(alike)


def _evidence(along: Array64, answer: Answer, expected: Array64) -> float:
    """The log of how much likelier ``answer`` is if nothing is known along a direction than if something is."""
    turned = answer.metric.factor.T @ along
    level = max(float(along @ expected @ along), _TINY)
    seen, noise = float(turned @ answer.matrix @ turned) / level, answer.noise * float(turned @ turned) / level
    return float((_OTHERWISE**2 - 2 * _OTHERWISE * seen) / (2 * np.square(max(noise, _TINY))))


def believed(before: Population, found: Indicators, same: Array64) -> Population:
    """With means, variances and covariances of indicators, each as far as columns are likely to be some.

    ``same`` ``(k, k)`` is how likely two of them belong together; the covariance is a mean over what may be the case.
    """
    likely = same.diagonal()
    covariance, mean = before.covariance.copy(), before.mean.copy()
    share = np.clip(found.share, 0.0, 1.0)
    mean[:-1] += likely * (found.origin + found.step * share - mean[:-1])
    own = np.maximum(share * (1 - share), found.error) * found.step**2
    between = -np.outer(found.step * share, found.step * share) * same
    covariance[:-1, :-1] += between - np.diag(between.diagonal())
    index = np.arange(len(likely))
    covariance[index, index] += likely * (own - covariance[index, index])
    return replace(before, mean=mean, covariance=covariance)
