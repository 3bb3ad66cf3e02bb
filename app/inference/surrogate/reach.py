"""How far a step goes where information bends along it: as far as rows change by what can be believed."""

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.state import State

LONGEST_FIRST, LONGEST, LONGEST_OF_FEW = 2.5, 1.5, 2.0
"""Changes of a linear predictor that a step may make where information bends along it: root mean square ones, and those
in the few rows of a rare level.
"""


def believed(state: State, move: Array64, turn: int) -> float:
    """The share of a move that is made now, (0, 1]."""
    setup, width = state.setup, state.setup.design.width
    own = float(np.max(np.abs(move[setup.model.predictors * width :]), initial=0.0))
    spread = state.population.spread(move, setup.model.predictors) if setup.bends else 0.0
    longest = LONGEST_FIRST if turn == 0 else LONGEST
    return min(1.0, longest / max(spread, own, 1e-12))


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
