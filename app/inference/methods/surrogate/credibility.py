"""Whether what a surrogate says of its own noise can be believed: from noised answers alone, false where they are mute.

A label tells little of its parameter, whatever the row: stated nats are wrong by a factor at worst, wherever the number
of units stands out of its noise. What a number tells has no bound. If units are miscounted, a noise scale or a rate is
not known yet, or the last steps still changed it, the information is wrong by any factor, and so are nats of noise that
are measured by it. Whatever targets are, the population of rows has an information at all; five things must then hold:

- the number of units stands out of its noise;
- noise moves the log of a row's information by little: that of a rate moves with the linear predictor, that of a noise
  scale by twice the move of the scale's logarithm;
- so did the last steps, and the last one was hardly longer than noise explains;
- scores were not bounded by so much that what they keep is the model's word, not the rows';
- parameters that are no coefficients have the information that the counted units give them.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.state import State

MOST_UNCOUNTED: Final = 0.4
"""Deviations of noise in the number of units, relative to it."""
MOST_BLURRED: Final = 0.3
"""Of the log of a row's information, by noise."""
MOST_CHANGED: Final = 0.4
"""The same, by each of the last steps together."""
MOST_SURPRISE_OF_NUMBERS: Final = 3.0
LEAST_KEPT: Final = 0.67
"""Of the information, by one of the last bounded scores at least; a share is never said to be below 0.6."""
MOST_APART: Final = 2.0
"""Times that the information of a noise scale may differ from that of the counted units."""

_LAST = 3
_OF_A_SCALE = 2.0


def believable(state: State) -> bool:
    """Whether nats mean what they say; for labels, wherever the number of units and the population are known at all."""
    if state.mode is None or state.population_information is None or not counts_units(state):
        return False
    if has_labels(state):
        return True
    lately = [_change(state, state.theta - score.theta) for score in state.scores[-_LAST:]]
    return bool(
        _blurred(state, state.mode.variance) <= MOST_BLURRED
        and max(lately) <= MOST_CHANGED
        and state.surprise <= MOST_SURPRISE_OF_NUMBERS
        and _kept(state) >= LEAST_KEPT
        and _apart(state) <= MOST_APART
    )


def counts_units(state: State) -> bool:
    """Whether the number of units exceeds its noise clearly."""
    return _uncounted(state) <= MOST_UNCOUNTED


def has_labels(state: State) -> bool:
    """Whether targets are labels, whose information is bounded."""
    target = state.setup.design.target
    return target is not None and target.is_discrete


def _uncounted(state: State) -> float:
    """Noise in the number of units relative to the answer itself: what is believed of it has a floor."""
    if state.moments is None or not state.moments.answer[0] > 0:
        return np.inf
    return state.moments.noise / float(state.moments.answer[0])


def _kept(state: State) -> float:
    """The largest share of the information that one of the last scores kept."""
    return max(score.kept for score in state.scores[-_LAST:])


def _coefficients(state: State) -> int:
    return state.setup.model.predictors * state.setup.design.width


def _change(state: State, step: Array64) -> float:
    """Of the log of a row's information along ``step`` ``(D,)``; a root mean square over rows."""
    own = _OF_A_SCALE * float(np.max(np.abs(step[_coefficients(state) :]), initial=0.0))
    rate = state.population.spread(step, state.setup.model.predictors) if state.setup.bends else 0.0
    return max(own, rate)


def _blurred(state: State, variance: float) -> float:
    """The same by noise of ``variance`` in every direction of the information's metric."""
    moves = np.sqrt(variance) * np.linalg.inv(np.linalg.cholesky(state.information))
    return float(np.sqrt(np.sum([_change(state, move) ** 2 for move in moves])))


def _apart(state: State) -> float:
    """By what factor the information of parameters of their own differs from the counted units'; 1 without any."""
    setup, first = state.setup, _coefficients(state)
    row = setup.model.fold(state.population.mean[None], np.zeros(1)).astype(np.float32)
    factors = setup.model.information_factors(row, state.theta).astype(np.float64).reshape(-1, len(state.theta))
    expected = state.rows * np.square(factors).sum(axis=0)[first:]
    found = (state.information - setup.prior.precision(state.theta)).diagonal()[first:]
    if not np.all((found > 0) & (expected > 0)):
        return np.inf
    return float(np.exp(np.max(np.abs(np.log(found / expected)), initial=0.0)))
