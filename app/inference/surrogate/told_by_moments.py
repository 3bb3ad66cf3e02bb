"""What moments tell of columns whose few rows bounds may have hidden: the least that a posterior knows of them.

Where noise may hide a rare level, matrices may have no room for its rows, and it ends less known than it is: twenty
times, on some tables. But the column's variance was asked for before. If it is a level's, its rows are at a bound of
the column, and what each tells of a label there follows from the parameter. Nats are lopsided: a posterior that is
twenty times too wide in a direction is 8 nats off, one that is as much too narrow 1.

Scores are bounded like matrices, but the prior is not. A search ends where both balance: nearer to the prior than all
that the level's rows say together.
"""

from typing import Final

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.matrices import sound
from app.inference.surrogate.state import State

_DEVIATIONS: Final = 1.0
"""Of noise in a variance, by which it may be smaller than it seems."""
_OF_FURTHER: Final = 0.5
"""Of the way to the further bound, from where on a level may be at the other one as well."""
_MOST_TIMES: Final = 2.0
"""That scores may weigh: what they weigh and what they say are noised, and the mode moves by their product."""
_LEAST_VARIANCE: Final = 1e-30
_TINY: Final = 1e-30


def lacking(state: State) -> Array64:
    """What the information ``(D, D)`` lacks of columns where noise may hide a level; diagonal.

    That is of what is left to be known of such a column once all others are. Nothing where it would make no matrix.
    """
    population, moments, information = state.population, state.moments, state.information
    if state.setup.curvature is None or moments is None or not np.any(population.hiding):
        return np.zeros_like(information)
    variance, error = moments.variances(state.rows)
    alone = _alone(population.covariance[:-1, :-1]) * variance
    told = state.rows * _of_a_row(state) * np.maximum(alone - _DEVIATIONS * error, 0.0)
    told += state.setup.prior.precision(state.theta).diagonal()[:-1]
    known = 1 / np.linalg.inv(information).diagonal()[:-1]
    found = np.diag(np.append(np.where(population.hiding, np.maximum(told - known, 0.0), 0.0), 0.0))
    return np.zeros_like(information) if sound(information + found) is None else found


def outweighing(state: State, more: Array64) -> Array64:
    """The mode ``(D,)`` if scores weigh as many times as much as ``more`` ``(D, D)`` makes of what was known.

    By Newton's step. At most twice, and as far as the prior's pull, which is what scores said, stands out of noise.
    """
    theta, information, prior = state.theta, state.information, state.setup.prior
    if state.mode is None or not np.any(more):
        return theta
    known = 1 / np.linalg.inv(information).diagonal() - prior.precision(theta).diagonal()
    beyond = np.minimum(more.diagonal() / np.maximum(known, _TINY), _MOST_TIMES - 1)
    pull = -prior.gradient(theta)
    noise = state.mode.variance * information.diagonal()
    clear = np.maximum(1 - noise / np.maximum(np.square(pull), _TINY), 0.0)
    found = theta + np.linalg.solve(information + more, beyond * clear * pull)
    return np.asarray(found if np.all(np.isfinite(found)) else theta)


def _of_a_row(state: State) -> Array64:
    """What a label tells of the predictor ``(k,)`` at each column's bounds: the further, and the other if it is far."""
    population, curvature = state.population, state.setup.curvature
    assert curvature is not None
    mean, bounds = population.mean[:-1], (population.least, 1.0)
    reach = np.array([np.abs(bound - mean) for bound in bounds])
    rows = [np.pad(np.where(np.eye(len(mean), dtype=np.bool_), bound, mean), ((0, 0), (0, 1))) for bound in bounds]
    each = curvature(np.array(rows) @ state.theta + state.theta[-1])
    return np.asarray(np.average(each, axis=0, weights=~(reach < _OF_FURTHER * reach.max(axis=0))))


def _alone(covariance: Array64) -> Array64:
    """The share ``(k,)`` of each column's variance that is left once all others are known."""
    deviation = np.sqrt(np.maximum(covariance.diagonal(), _LEAST_VARIANCE))
    found = sound(covariance / np.outer(deviation, deviation))
    return np.ones(len(deviation)) if found is None else 1 / np.linalg.inv(found).diagonal()
