"""What bounded scores keep of the information, from beliefs alone: no answer says it.

A score's weight depends on how long its row is in the metric and on how uncertain its label is. For that, rows are
drawn from a population that follows the model. How wide its linear predictors spread is what it knows least: noise in
means and variances, times coefficients, adds up. But the information of the intercept says how uncertain labels are on
average, with little noise; so the parameter is scaled until the population says the same.

In a normal population one share serves all directions. Where columns have tails, the direction of a rare level may
keep a tenth of what others do, and scores are made up for it direction by direction, as far as noise allows.
"""

from typing import NamedTuple

import numpy as np
import scipy

from app.inference.protocol import Array32, Array64
from app.inference.surrogate.beginning import information_of
from app.inference.surrogate.matrices import Metric, metric, sound, symmetric
from app.inference.surrogate.state import State

_ROWS = 1024
_LEAST = 0.6
_FLOORS = np.geomspace(0.1, _LEAST, 13)
_MOST_GROWN = 4.0
"""Nats of noise that a score may have by making up for what bounds took, direction by direction; beyond, less of it."""
_SCALES = np.append(1.0, np.geomspace(0.05, 2.0, 60))
_OF_A_MATRIX, _LEAST_NOISE = 0.25, 0.005
"""Deviations of the logarithm of the belief, for that of a matrix's diagonal: the intercept is what is known best."""
_TINY = float(np.finfo(np.float64).tiny)


class Kept(NamedTuple):
    """``share`` of the information, the mean over directions; ``back`` ``(D, D)`` makes up for it in a gradient."""

    share: float
    back: Array64


def efficiency(rng: np.random.Generator, state: State, turn: int) -> Kept:
    """What bounded scores keep, between 0.6 and 1, or down to a tenth of single directions where columns have tails.

    In the population's own metric: where beliefs about rows and about the information part, rows would seem longer or
    shorter than they are.
    """
    setup, theta, tailed = state.setup, steepness(state, turn) * state.theta, state.population.tailed_rows
    x = state.population.rows(rng, max(_ROWS, 4 * setup.design.width)) if tailed is None else tailed
    rows = setup.model.fold(x, setup.model.sample_targets(rng, x, theta)).astype(np.float32)
    prior = setup.prior.precision(theta)
    own = sound(information_of(setup, state.population, rows, theta) + prior)
    within = metric(state.information if own is None else own)
    whole = setup.model.scores(rows, theta) @ within.whitening.T.astype(np.float32)
    bounded = setup.model.bounded_scores(rows, theta, within.whitening, setup.schedule.score_bound)
    kept = float(np.vdot(bounded, whole)) / max(float(np.vdot(whole, whole)), 1e-30)
    share = float(np.clip(kept, _LEAST, 1.0))
    alike = Kept(share, np.eye(len(theta)) / share)
    if tailed is None:
        return alike
    factors = setup.model.information_factors(rows, theta)[:, 0].astype(np.float64) @ within.whitening.T
    noise = setup.schedule.noise / float(setup.schedule.score_shares[turn])
    return _by_direction(factors, _weights(bounded, whole), within, noise) or alike


def _weights(bounded: Array32, whole: Array32) -> Array64:
    """``(n,)``: those of rows, which depend on no label."""
    norms = (np.linalg.norm(each.astype(np.float64), axis=1) for each in (bounded, whole))
    after, before = (np.maximum(each, _TINY) for each in norms)
    return np.asarray(np.minimum(after / before, 1.0))


def _by_direction(factors: Array64, weights: Array64, within: Metric, noise: float) -> Kept | None:
    """From the rows' information factors ``(n, D)`` in the metric, for a score that loses about ``noise`` nats.

    None where rows leave a direction without information.
    """
    full, left = sound(symmetric(factors.T @ factors)), factors.T @ (factors * weights[:, None])
    if full is None:
        return None
    values, vectors = scipy.linalg.eigh(symmetric(left), full)
    floors = np.maximum(values, _FLOORS[:, None])
    grown = noise * np.mean(1 / np.square(floors), axis=1)
    shares = np.minimum(floors[min(int(np.sum(grown > _MOST_GROWN)), len(floors) - 1)], 1.0)
    back = full @ (vectors / shares) @ vectors.T
    return Kept(float(shares.mean()), within.factor @ back @ within.whitening)


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
