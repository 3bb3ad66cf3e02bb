"""What bounded scores keep of the information, from beliefs alone: no answer says it.

A score's weight depends on how long its row is in the metric and on how uncertain its label is. For that, rows are
drawn from a normal population that follows the model. How wide its linear predictors spread is what it knows least:
noise in means and variances, times coefficients, adds up. But the information of the intercept says how uncertain
labels are on average, with little noise; so the parameter is scaled until the population says the same.
"""

import numpy as np

from app.inference.surrogate.beginning import information_of
from app.inference.surrogate.matrices import metric, sound
from app.inference.surrogate.state import State

_ROWS = 1024
_LEAST = 0.6
_SCALES = np.append(1.0, np.geomspace(0.05, 2.0, 60))
_OF_A_MATRIX, _LEAST_NOISE = 0.25, 0.005
"""Deviations of the logarithm of the belief, for that of a matrix's diagonal: the intercept is what is known best."""
_TINY = float(np.finfo(np.float64).tiny)


def efficiency(rng: np.random.Generator, state: State, turn: int) -> float:
    """The share of the information that bounded scores keep, in [0.6, 1].

    In the population's own metric: where beliefs about rows and about the information part, rows would seem longer or
    shorter than they are.
    """
    setup, theta = state.setup, steepness(state, turn) * state.theta
    x = state.population.rows(rng, max(_ROWS, 4 * setup.design.width))
    rows = setup.model.fold(x, setup.model.sample_targets(rng, x, theta)).astype(np.float32)
    prior = setup.prior.precision(theta)
    own = sound(information_of(setup, state.population, rows, theta) + prior)
    whitening = metric(state.information if own is None else own).whitening
    whole = setup.model.scores(rows, theta) @ whitening.T.astype(np.float32)
    bounded = setup.model.bounded_scores(rows, theta, whitening, setup.schedule.score_bound)
    kept = float(np.vdot(bounded, whole)) / max(float(np.vdot(whole, whole)), 1e-30)
    return float(np.clip(kept, _LEAST, 1.0))


def steepness(state: State, turn: int) -> float:
    """Of the parameter, at which the population's information of the intercept is the believed one; about 1.

    As far as noise in that belief allows, and no further from 1 than coefficients are likely to be off. It is 1 where
    information is known by columns only, or does not follow from one predictor.
    """
    setup = state.setup
    if setup.curvature is None or not setup.bends or setup.columnwise:
        return 1.0
    known = (state.information - setup.prior.precision(state.theta))[-1, -1]
    levels = state.population.count * setup.curvature.levels(state.population, state.theta, _SCALES)
    apart = np.log(np.maximum(levels, _TINY)) - np.log(max(known, _TINY))
    noise = max(_OF_A_MATRIX * setup.schedule.information_noise(turn), _LEAST_NOISE)
    return float(_SCALES[np.argmin(np.square(apart / noise) + np.square(np.log(_SCALES)))])
