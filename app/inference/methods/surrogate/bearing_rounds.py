"""The rounds of a surrogate that follow a bearing: scores without slopes instead of where the mode is believed."""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.query import Oracle
from app.inference.methods.surrogate.bearing import Found
from app.inference.methods.surrogate.carrying import carried
from app.inference.methods.surrogate.mending import asked
from app.inference.methods.surrogate.scores import Score, combined
from app.inference.methods.surrogate.state import State

MOST_ERROR = 1.0
"""Times its noise that a bearing's error may seem to be, in variance, and it is still asked for."""

TESTS = (6, 4)
"""Rounds from the end that ask near the mode whatever is believed, so that the rounds after them may turn back."""


def follows(state: State, turn: int) -> bool:
    """Whether the round's score is asked at a parameter without slopes."""
    left = state.setup.schedule.rounds - turn
    return state.bearing is not None and not state.bearing.doubted and left not in TESTS


def headed(state: State, oracle: Oracle, turn: int) -> State:
    """The state after the round's score without slopes: moved to where it, and all scores so far, see the mode.

    Where scores at the mode would do better, the bearing is given up, and the search begins without slopes.
    """
    schedule, prior, bearing = state.setup.schedule, state.setup.prior.precision(state.theta), state.bearing
    assert bearing is not None
    share, first = float(schedule.score_shares[turn]), not bearing.weight
    answer = asked(oracle, bearing.query, schedule, share, bearing.query.clip)
    bearing = bearing.with_answer(answer, share)
    said = bearing.found(schedule.effective_sigma, schedule.rate)
    if first and not state.scores and not said.worthwhile:
        start = np.append(np.zeros(len(state.theta) - 1), said.intercept)
        return replace(carried(state, start, prior), theta=start, step=start - state.theta, mode=None, bearing=None)
    there = carried(state, said.theta, prior)
    state = replace(state, bearing=replace(bearing, intercept=said.intercept))
    state, scores = _weighed(state, said, there.information)
    mode = combined(scores, there.information, state.setup.prior.precision(said.theta), state.population, 1)
    move, before = mode.mean - state.theta, state.mode.variance if state.mode else mode.variance
    surprise = float(move @ there.information @ move) / (len(move) * (mode.variance + before))
    return replace(carried(state, mode.mean, prior), theta=mode.mean, step=move, mode=mode, surprise=surprise)


def tested(state: State, information: Array64) -> tuple[State, tuple[Score, ...]]:
    """All scores, and with them what a bearing says, after its test, which may leave it in doubt."""
    bearing, schedule = state.bearing, state.setup.schedule
    if bearing is None or not bearing.weight:
        return state, state.scores
    return _weighed(state, bearing.found(schedule.effective_sigma, schedule.rate), information)


def _weighed(state: State, said: Found, information: Array64) -> tuple[State, tuple[Score, ...]]:
    assert state.bearing is not None
    score = said.pulled(state.setup.prior, information).weighed(state.scores, information)
    doubted = state.bearing.doubted or score.variance > (1 + MOST_ERROR) * said.variance
    return replace(state, bearing=replace(state.bearing, doubted=doubted)), (score, *state.scores)
