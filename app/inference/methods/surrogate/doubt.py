"""Noise in a mode, where the information that it is measured by may be wrong as well.

What answers made of the information is compared with what the population of rows and the parameter make of it. Where
the belief H is larger than the truth E, noise v H in scores becomes v E^-1 H E^-1 in a search that arrives: H / E times
v in units of E. Where it is smaller, steps by H^-1 have noise v H^-1: E / H times v in the same units. So noise counts
by the less favourable of both, direction by direction.

A search that is still on its way, by steps that single scores' noise hides, may have as much of it before it as behind:
what it went in the last rounds counts, too, unless it was about to stop.
"""

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.methods.surrogate.matrices import metric, sound
from app.inference.methods.surrogate.population_information import information_of_population
from app.inference.methods.surrogate.state import State

_MOST_LARGER = 5.0
"""Times that the population's information may seem larger than the belief: answers would have shown more."""
_LEAST_RATIO = 1e-6
"""Of the population's information to the belief, that counts."""
_LAST = 3
"""Rounds whose way counts."""
_BY_CHANCE = 1.5
"""Times what the scores of these rounds move the mode by on average, in squared length, that noise may."""
_TINY = float(np.finfo(np.float64).tiny)


def population_information(rng: np.random.Generator, state: State) -> Array64 | None:
    """``(D, D)`` at the parameter, prior included; None where it is no information."""
    return sound(information_of_population(rng, state.setup, state.population, state.theta))


def doubted_noise(state: State, noise: Array64) -> Array64:
    """``noise`` ``(D, D)``, ``H (.) H`` in the belief H, by the less favourable information, and with it the way.

    What the population says counts as far as it is known at all.
    """
    if state.population_information is None:
        return noise
    within = metric(state.information)
    ratio, vectors = scipy.linalg.eigh(within.whitening @ state.population_information @ within.whitening.T)
    larger = np.clip(ratio, 1.0, _MOST_LARGER)
    smaller = 1 / np.clip(ratio, _LEAST_RATIO, 1.0)
    root = (vectors * np.sqrt(np.maximum(larger, smaller))) @ vectors.T
    way = (vectors * np.sqrt(larger)) @ vectors.T @ _way(state, within.factor.T)
    found = root @ within.whitening @ noise @ within.whitening.T @ root + np.outer(way, way)
    return np.asarray(within.factor @ found @ within.factor.T)


def _way(state: State, root: Array64) -> Array64:
    """What may be left of it, ``(D,)``, where ``root`` ``(D, D)`` takes a step: as much as there was, beyond noise.

    Of the last rounds' steps the later ones count, along all of them: a search that is about to stop hardly moves. One
    that asks without slopes does not depend on where it is, and in few rounds the first step is all there is.
    """
    size, searched = len(state.theta), state.bearing is None or state.bearing.doubted
    earlier = state.scores[:-_LAST]
    if not (earlier and searched and state.mode is not None):
        return np.zeros(size)
    places = [score.theta for score in state.scores[-_LAST:]]
    along = root @ (state.theta - places[0])
    length = float(np.linalg.norm(along))
    later = float(along @ root @ (state.theta - places[1])) / max(length, _TINY)
    left = min(max(later * _LAST / (_LAST - 1), 0.0), length)
    before = 1 / sum(1 / score.variance for score in earlier)
    chance = _BY_CHANCE * size * max(before - state.mode.variance, 0.0)
    return np.asarray(along / max(length, _TINY) * np.sqrt(max(left**2 - chance, 0.0)))
