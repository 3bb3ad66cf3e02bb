"""What bounded scores keep of the information, from beliefs alone: no answer says it.

A score's weight depends on how long its row is in the metric and on how uncertain its label is. For that, rows are
drawn from a population that follows the model. How wide its linear predictors spread is what it knows least: noise in
means and variances, times coefficients, adds up. But the information of the intercept says how uncertain labels are on
average, with little noise; so the parameter is scaled until the population says the same.

In a normal population one share serves all directions. Where columns have tails, the direction of a rare level may
keep a tenth of what others do, and what is lost is restored direction by direction, as far as noise allows. There rows
are as long as in the metric that they are asked in (:mod:`app.inference.methods.surrogate.elongation`).
"""

import numpy as np

from app.inference.core.model import Array32, Array64, Model
from app.inference.methods.surrogate.contribution_bounds import information_noise, score_bound, score_noise
from app.inference.methods.surrogate.directions import LEAST, Kept, informations
from app.inference.methods.surrogate.elongation import believed_lengths, shortening
from app.inference.methods.surrogate.matrices import Metric, metric, sound
from app.inference.methods.surrogate.population_information import information_of
from app.inference.methods.surrogate.slope import Parts, turned
from app.inference.methods.surrogate.state import State

_ROWS = 1024
_SCALES = np.append(1.0, np.geomspace(0.05, 2.0, 60))
_OF_A_MATRIX, _LEAST_NOISE = 0.25, 0.005
"""Deviations of the logarithm of the belief, for that of a matrix's diagonal: the intercept is what is known best."""
_TINY = float(np.finfo(np.float64).tiny)


def efficiency(rng: np.random.Generator, state: State, turn: int, asked: Metric, apart: float = 0.0) -> Kept:
    """What bounded scores in the metric ``asked`` keep: of 0.6 to 1, of single directions 0.1 where columns have tails.

    All directions together in the population's own metric, without the room that ``asked`` may have: where beliefs
    about rows and about the information part, all rows would seem longer or shorter than they are. Along the parameter
    by itself, where scores are bounded ``apart`` there.
    """
    setup, theta, tailed = state.setup, steepness(state, turn) * state.theta, state.population.tailed_rows
    clip, parts = score_bound(setup.schedule), Parts(asked, apart)
    x = state.population.rows(rng, max(_ROWS, 4 * setup.design.width)) if tailed is None else tailed
    rows = setup.model.fold(x, setup.model.sample_targets(rng, x, theta)).astype(np.float32)
    prior = setup.prior.precision(theta)
    own = sound(information_of(setup, state.population, rows, theta) + prior)
    within = metric(state.information if own is None else own)
    across = turned(within, theta)[0].T[:-1] @ within.whitening if apart else within.whitening
    share = _kept(setup.model, rows, theta, across, clip)
    along = _kept(setup.model, rows, theta, theta[None, :], parts.furthest(state.theta)) if apart else share
    alike = _apart(Kept(share, np.eye(len(theta)) / share), along, parts)
    if tailed is None:
        return alike
    factors = np.sqrt(state.population.count / len(x)) * setup.model.information_factors(rows, theta)[:, 0]
    believed = metric(state.information)
    lengths = believed_lengths(setup.model, rows, theta, within, believed) * shortening(x, believed, parts.across)
    weights = np.minimum(1.0, np.sqrt(clip**2 - apart**2) / np.maximum(lengths, _TINY))
    said = informations(factors.astype(np.float64) @ within.whitening.T, weights, within, prior)
    noise = 0.5 * len(theta) * score_noise(setup.schedule, turn) ** 2
    found = None if said is None else said.kept(believed, asked, noise)
    return alike if found is None else _apart(found, along, parts)


def _kept(model: Model, rows: Array32, theta: Array64, transform: Array64, clip: float) -> float:
    """Of the squares of scores in the coordinates ``transform`` ``(k, D)``, by a bound that knows no target."""
    whole = model.scores(rows, theta) @ transform.T.astype(np.float32)
    kept = float(np.vdot(model.bounded_scores(rows, theta, transform, clip), whole))
    return float(np.clip(kept / max(float(np.vdot(whole, whole)), 1e-30), LEAST, 1.0))


def _apart(kept: Kept, along: float, parts: Parts) -> Kept:
    """``kept`` but for the part along the parameter, which by itself keeps the share ``along``."""
    if not parts.apart:
        return kept
    part = np.outer(parts.metric.factor[:, -1], parts.metric.whitening[-1])
    rest = np.eye(len(part)) - part
    return Kept(kept.share, rest @ kept.back @ rest + part / along)


def steepness(state: State, turn: int) -> float:
    """Of the parameter, at which the population's information of the intercept is the believed one; about 1.

    As far as noise in that belief allows, and no further from 1 than coefficients are likely to be off. It is 1 where
    information is known by columns only, or does not follow from one predictor.
    """
    setup = state.setup
    if setup.curvature is None or not setup.bends or setup.columnwise:
        return 1.0
    known = _of_intercept(state)
    levels = state.population.count * setup.curvature.levels(state.population, state.theta, _SCALES)
    apart = np.log(np.maximum(levels, _TINY)) - np.log(max(known, _TINY))
    noise = max(_OF_A_MATRIX * information_noise(setup.schedule, turn, concentration(state)), _LEAST_NOISE)
    return float(_SCALES[np.argmin(np.square(apart / noise) + np.square(np.log(_SCALES)))])


def concentration(state: State) -> float:
    """How much more a row whose label is uncertain tells than the mean row; infinite where a level may be unknown."""
    setup = state.setup
    if state.population.unknown_levels or setup.curvature is None:
        return np.inf
    most = state.population.count * float(setup.curvature(np.zeros(1))[0])
    return most / max(_of_intercept(state), _TINY * most)


def _of_intercept(state: State) -> float:
    """Its believed information, without the prior's part."""
    return float((state.information - state.setup.prior.precision(state.theta))[-1, -1])
