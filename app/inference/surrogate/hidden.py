"""What rows far out may tell that noise hides: a column may be a level of few rows, and seem to be constant.

A histogram of lengths shows no bin below its noise, and moments around such lengths clip what lies far beyond. As many
rows as neither would show may be at a column's bound; were they there, the posterior would be narrower than is said.
"""

from typing import Final

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.population import LEAST_SEEN
from app.inference.surrogate.state import State

MOST_HIDDEN: Final = 80.0
"""Nats that such rows may take, whatever noise takes, and be no reason for doubt."""
_TIMES_NOISE = 10.0
"""Times the nats of noise that they may take, if that is more."""


def shows_enough(state: State, noise: float) -> bool:
    """Whether what may be hidden is within what ``noise``, in nats, may have done."""
    return hidden_nats(state) <= max(MOST_HIDDEN, _TIMES_NOISE * noise)


def hidden_nats(state: State) -> float:
    """About those that the shape of a posterior of labels would be off by, if some column had such rows."""
    setup, population = state.setup, state.population
    blocks, width = setup.model.predictors, setup.design.width
    row = setup.model.fold(np.ones((1, width)), np.zeros(1)).astype(np.float32)
    factors = setup.model.information_factors(row, np.zeros_like(state.theta)).astype(np.float64)[0]
    each = np.square(factors[:, : blocks * width]).sum(axis=0)
    prior = setup.prior.precision(state.theta).diagonal()[: blocks * width] / each
    variance = np.maximum(population.covariance.diagonal()[:-1], 0.0)
    known = state.rows * variance + prior.reshape(blocks, width)[:, :-1]
    return 0.5 * float(np.sum(np.max(_unseen(state, variance) * _squared_reach(state) / known, axis=1)))


def _squared_reach(state: State) -> Array64:
    """From the columns' means to their further bounds, ``(k,)``."""
    mean = state.population.mean[:-1]
    least = np.where(state.setup.known.indicators, 0.0, -1.0)
    return np.square(np.maximum(mean - least, 1.0 - mean))


def _unseen(state: State, variance: Array64) -> Array64:
    """How many rows, ``(k,)``: fewer than a bin of lengths would show, or than a column's squares would."""
    schedule = state.setup.schedule
    by_lengths = np.inf if state.lengths is None else LEAST_SEEN * state.lengths.noise
    noise = schedule.noise_of(schedule.moments_share, state.clip)
    by_squares = (state.rows * variance / state.scale**2 + LEAST_SEEN * noise) / state.clip
    return np.minimum(by_lengths, by_squares)
