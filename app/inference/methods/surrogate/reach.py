"""How far a step goes where information bends along it: as far as rows change by what can be believed."""

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.state import State

LONGEST_FIRST, LONGEST, LONGEST_OF_FEW = 2.5, 1.5, 2.0
"""Changes of a linear predictor that a step may make where information bends along it: root mean square ones, and those
in the few rows of a rare level.
"""
_OF_PREDICTORS = 0.5
"""Of labels' root mean square predictors, that a clear step may make beside: a steep slope is many of these away."""


def believed(state: State, move: Array64, turn: int) -> float:
    """The share of a move that is made now, (0, 1]."""
    setup, width = state.setup, state.setup.design.width
    own = float(np.max(np.abs(move[setup.model.predictors * width :]), initial=0.0))
    spread = state.population.spread(move, setup.model.predictors) if setup.bends else 0.0
    longest = max(LONGEST_FIRST if turn == 0 else LONGEST, _clear(state, move) * _OF_PREDICTORS * _predictors(state))
    return min(1.0, longest / max(spread, own, 1e-12))


def _predictors(state: State) -> float:
    """Their root mean square, where labels tell of one predictor that bends the information; 0 elsewhere."""
    bends = state.setup.bends and state.setup.curvature is not None and state.setup.schedule.labels
    return state.population.spread(state.theta, 1) if bends else 0.0


def _clear(state: State, move: Array64) -> float:
    """The share of a step that noise in the last score is unlikely to have made; 0 for the first."""
    if state.mode is None:
        return 0.0
    length = float(move @ state.information @ move)
    return max(0.0, 1 - len(move) * state.scores[-1].variance / max(length, 1e-30))


def within_reach(state: State, move: Array64) -> Array64:
    """``move`` ``(D,)``, so long that rows of a rare level change no more than they can be believed to.

    They are too few to show in a mean over rows, and beyond, where their labels are certain, nothing calls back. All
    other rows change as they would have: the intercept makes up for what they have of that column.
    """
    tails, population = state.population.tails, state.population
    if tails is None:
        return move
    deviation = np.sqrt(population.covariance.diagonal()[:-1])
    most = tails.longest(deviation, LONGEST_OF_FEW)
    within = np.clip(move[:-1], -most, most)
    return np.append(within, move[-1] + (move[:-1] - within) @ tails.others(population.mean[:-1], deviation))
