"""What rows far out may tell that noise hides: a column may be a level of few rows, and seem to be constant.

Rows that no bin of lengths showed beyond its noise are no part of the scale, and moments around shorter ones clip them.
As many of them as answers leave room for may be at a column's bound; were they there, the posterior would be narrower
than is said. That is said of any model with an intercept, at the parameter zero: a rate's rows may tell more than that.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.queries.lengths import BINS

MOST_HIDDEN: Final = 60.0
"""Nats, however little noise there is: a part of what tables that can be learned at all tell."""
MOST_TIMES_NOISE: Final = 5.0
_DEVIATIONS = 1.64
"""Of noise that answers may be below what they would be without: one in twenty are further."""


def shows_enough(state: State, noise: float) -> bool:
    """Whether what may be hidden is at most 60 nats, or five times the nats that are said of ``noise``."""
    return hidden_nats(state) <= max(MOST_HIDDEN, MOST_TIMES_NOISE * noise)


def hidden_nats(state: State) -> float:
    """Those by which a posterior would be too wide, if the worst column had as many rows as may be hidden.

    With r times the information that is known of the column, that is ``(r - log(1 + r)) / 2``, at most ``r / 2``.
    """
    setup = state.setup
    blocks, width = setup.model.predictors, setup.design.width
    row = setup.model.fold(np.ones((1, width)), np.zeros(1)).astype(np.float32)
    factors = setup.model.information_factors(row, np.zeros_like(state.theta)).astype(np.float64)[0]
    of_label = np.square(factors[:, : blocks * width]).sum(axis=0)
    prior = setup.prior.precision(state.theta).diagonal()[: blocks * width] / of_label
    variance = np.maximum(state.population.covariance.diagonal()[:-1], 0.0)
    known = state.rows * variance + prior.reshape(blocks, width)[:, :-1]
    hidden = _most_rows(state, variance) * np.square(state.population.furthest - state.population.mean[:-1])
    return 0.5 * float(np.max(hidden / known, axis=1, initial=0.0).sum())


def _most_rows(state: State, variance: Array64) -> Array64:
    """How many rows ``(k,)`` may be at each column's bound: all those of as many units as answers leave room for."""
    schedule = state.setup.schedule
    squares = state.rows * variance / state.scale**2
    noise = schedule.noise_of(schedule.moments_share, state.clip)
    by_squares = (squares + _DEVIATIONS * noise) / state.clip
    return state.setup.rows_per_unit * np.minimum(_by_lengths(state, variance), by_squares)


def _by_lengths(state: State, variance: Array64) -> Array64:
    """Units ``(k,)`` in the bin where such rows are, or in the next one: they may be longer, by what else they have."""
    if state.lengths is None:
        return np.full(len(variance), np.inf)
    from_centre = np.square(state.population.mean[:-1] - state.centre) + variance
    others = from_centre.sum() - from_centre
    squared = np.square(state.population.furthest - state.centre) + others
    place = np.floor(-np.log2(np.maximum(squared / state.lengths.largest, 2.0**-BINS)))
    place = np.clip(place, 0, len(state.lengths.counts) - 1).astype(np.int64)
    counts = np.maximum(state.lengths.counts[place], state.lengths.counts[np.maximum(place - 1, 0)])
    return np.asarray(np.maximum(counts, 0.0) + _DEVIATIONS * state.lengths.noise)
