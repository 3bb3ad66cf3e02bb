"""Beliefs about the information, carried from one parameter to the next before any answer corrects them."""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.memory import begun, congruent
from app.inference.methods.surrogate.state import State

_FAR = 1.0
"""Root mean square change of the linear predictor by which rows that told much tell little, and others much instead."""


def carried(state: State, theta: Array64, prior: Array64) -> State:
    """Beliefs about the information as they would be at ``theta``, at least the prior's."""
    setup, there = state.setup, state.setup.prior.precision(theta)
    if setup.curvature is not None and setup.bends and not setup.columnwise:
        change = setup.curvature.change(state.population, state.theta, theta, prior)
    elif state.memory is None:
        return replace(state, information=state.information - prior + there)
    else:
        change = np.eye(len(theta))
    memory, information = state.memory, congruent(state.information, change, prior, there)
    if memory is not None:
        moved = state.population.spread(theta - state.theta, 1) if setup.bends else 0.0
        if setup.schedule.searching and moved > _FAR:
            memory = begun(information)
        else:
            memory = memory.carried(change, prior, there, None if setup.schedule.crowded else moved)
    return replace(state, memory=memory, information=information)
