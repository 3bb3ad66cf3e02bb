"""Beliefs about the information, carried from one parameter to the next before any answer corrects them."""

from dataclasses import replace

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.memory import congruent
from app.inference.surrogate.state import State


def carried(state: State, theta: Array64, prior: Array64) -> State:
    """Beliefs about the information as they would be at ``theta``, at least the prior's."""
    setup, there = state.setup, state.setup.prior.precision(theta)
    if setup.curvature is not None and setup.bends and not setup.columnwise:
        change = setup.curvature.change(state.population, state.theta, theta, prior)
    elif state.memory is None:
        return replace(state, information=state.information - prior + there)
    else:
        change = np.eye(len(theta))
    memory = state.memory
    if memory is not None:
        moved = state.population.spread(theta - state.theta, 1) if setup.bends else 0.0
        memory = memory.carried(change, prior, there, None if setup.schedule.crowded else moved)
    return replace(state, memory=memory, information=congruent(state.information, change, prior, there))
