"""Noise in a mode, where the information that it is measured by may be wrong as well.

What answers made of the information is compared with what the population of rows and the parameter make of it. Where
the belief is larger, the mode is known less well than it says: a score's noise is as large as the belief, what a score
tells no larger than the truth. Where it is smaller, a move of the mode costs more than it says. So noise counts by the
less favourable of both, direction by direction. And a search that has gone one way in each of its last rounds, by steps
that single scores' noise hides, may have as much of the way before it: that counts as noise, too.
"""

import numpy as np
import scipy

from app.inference.protocol import Array64
from app.inference.surrogate.beginning import information_of_population
from app.inference.surrogate.matrices import metric, sound
from app.inference.surrogate.state import State

_MOST_LARGER = 5.0
"""Times that the population's information may seem larger than the belief: answers would have shown more."""
_LEAST_SHARE = 1e-6
"""Of the belief, that the population's information is at least."""
_LAST = 3
"""Rounds that a search has gone one way in."""
_BY_CHANCE = 3.0
"""Times the mode's noise that their steps together may be, in squared length and on average."""
_TINY = float(np.finfo(np.float64).tiny)


def expected(rng: np.random.Generator, state: State) -> Array64 | None:
    """The population's information ``(D, D)`` at the parameter, prior included; None where it is none."""
    return sound(information_of_population(rng, state.setup, state.population, state.theta))


def doubted(state: State, noise: Array64) -> Array64:
    """``noise`` ``(D, D)``, in a precision's coordinates, by the less favourable information, and the way with it."""
    if state.mode is None or state.expected is None:
        return noise
    within = metric(state.information)
    whitened = within.whitening @ np.stack([noise, state.expected]) @ within.whitening.T
    values, vectors = scipy.linalg.eigh(whitened[1])
    share = np.maximum(values, _LEAST_SHARE)
    times = (vectors * np.sqrt(np.maximum(1 / share, np.minimum(share, _MOST_LARGER)))) @ vectors.T
    way = within.factor.T @ _way(state)
    squared = float(way @ way)
    beyond = max(0.0, 1 - _BY_CHANCE * len(way) * state.mode.variance / max(squared, _TINY))
    found = times @ whitened[0] @ times.T + beyond * np.outer(way, way)
    return np.asarray(within.factor @ found @ within.factor.T)


def _way(state: State) -> Array64:
    """``(D,)``, of the last rounds; a bearing needs no search."""
    since = state.scores[-_LAST:]
    searched = state.bearing is None or state.bearing.doubted
    return state.theta - since[0].theta if since and searched else np.zeros_like(state.theta)
