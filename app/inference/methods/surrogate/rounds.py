"""The rounds of a surrogate: an information matrix and a score at the current parameter, then the next parameter."""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.query import Oracle
from app.inference.methods.surrogate.answer import Answer
from app.inference.methods.surrogate.asking import columns
from app.inference.methods.surrogate.bearing_rounds import tested
from app.inference.methods.surrogate.carrying import carried
from app.inference.methods.surrogate.columns import clip_of_columns, no_columns
from app.inference.methods.surrogate.contribution_bounds import (
    information_bound,
    information_noise,
    score_bound,
    score_noise,
)
from app.inference.methods.surrogate.directions import growth
from app.inference.methods.surrogate.efficiency import concentration, efficiency
from app.inference.methods.surrogate.matrices import metric
from app.inference.methods.surrogate.matrix_metric import roomy
from app.inference.methods.surrogate.mending import asked
from app.inference.methods.surrogate.reach import believed, within_reach
from app.inference.methods.surrogate.score_metric import roomy_for_scores
from app.inference.methods.surrogate.scores import Score, combined, newton
from app.inference.methods.surrogate.slope import in_parts
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.queries import BoundedScoreSum, InformationSum


def informed(state: State, oracle: Oracle, turn: int) -> State:
    """The state after the round's information, whole or by columns."""
    return _by_columns(state, oracle) if state.setup.columnwise else _whole(state, oracle, turn)


def _by_columns(state: State, oracle: Oracle) -> State:
    setup, schedule = state.setup, state.setup.schedule
    assert setup.curvature is not None
    level = float(np.trace(setup.curvature.information(state.population, state.theta)))
    level /= state.population.count * float(np.trace(state.population.second_moments))
    query = columns(setup, state.scale, state.theta, clip_of_columns(state.clip, level))
    answer = asked(oracle, query, schedule, schedule.information_share, query.clip)
    noise = schedule.noise_of(schedule.information_share, query.clip)
    found = (state.columns or no_columns(query.length)).with_answer(answer, noise)
    information = found.information(state.scale, setup.places, setup.known) + setup.prior.precision(state.theta)
    return replace(state, columns=found, information=information)


def _whole(state: State, oracle: Oracle, turn: int) -> State:
    setup, schedule, prior = state.setup, state.setup.schedule, state.setup.prior.precision(state.theta)
    concentrated = concentration(state)
    bound, noise = (of(schedule, turn, concentrated) for of in (information_bound, information_noise))
    found = roomy(state, metric(state.information), bound, noise)
    query = InformationSum(state.theta, found.metric.whitening, bound)
    said = asked(oracle, query, schedule, schedule.information_share, bound)
    answer = Answer(said, found.metric, noise, prior, _changing(state), schedule.slots * bound, found.wider)
    if state.memory is None:
        state = replace(state, information=answer.corrects(state.information))
    else:
        memory = state.memory.with_answer(answer)
        state = replace(state, memory=memory, information=memory.information)
    if turn or setup.curvature is None:
        return state
    level = state.population.count * float(setup.curvature(np.zeros(1))[0])
    return replace(state, population=state.population.with_second_moments((state.information - prior) / level))


def scored(rng: np.random.Generator, state: State, oracle: Oracle, turn: int) -> State:
    """The state after the round's score: moved to where all scores so far see the mode."""
    setup, schedule = state.setup, state.setup.schedule
    within = metric(state.information)
    said, apart = in_parts(state, roomy_for_scores(state, within, score_bound(schedule)))
    query = BoundedScoreSum(state.theta, said.whitening, score_bound(schedule), apart)
    answer = asked(oracle, query, schedule, float(schedule.score_shares[turn]), query.clip)
    kept = efficiency(rng, state, turn, said, apart)
    noise = kept.back @ said.factor
    gradient = noise @ answer + setup.prior.gradient(state.theta)
    grown = growth(noise, within)
    added, sampled = score_noise(schedule, turn) ** 2, (1 / schedule.rate - 1) / kept.share
    variance = added * grown + sampled
    shaped = (added * noise @ noise.T + sampled * state.information) / variance
    shape = None if state.population.tails is None and said is within else shaped
    score = Score(state.theta, gradient, variance, state.information, kept.share, shape)
    return _moved(replace(state, scores=(*state.scores, score)), turn)


def _moved(state: State, turn: int) -> State:
    setup, blocks = state.setup, state.setup.model.predictors
    prior = setup.prior.precision(state.theta)
    last = state.scores[-1]
    step = newton(last, state.information)
    before = last.variance + (state.mode.variance if state.mode else 0.0)
    alone = float(step @ state.information @ step) / ((len(step) + 1) * before)
    if setup.curvature is not None and setup.bends:
        step = setup.curvature.stretch(state.population, state.theta, step) * step
    state, scores = tested(state, state.information)
    mode = combined(scores, state.information, prior, state.population, blocks, newest=state.theta + step)
    move = mode.mean - state.theta
    expected = len(move) * (mode.variance + last.variance)
    surprise = max(float(move @ state.information @ move) / expected, alone)
    if turn < setup.schedule.rounds - 1:
        move *= believed(state, move, turn)
    move = within_reach(state, move)
    there = carried(state, state.theta + move, prior)
    return replace(there, theta=state.theta + move, step=move, mode=mode, surprise=surprise)


def _changing(state: State) -> Array64:
    """Directions ``(D, k)`` along which information is expected to change: the parameter, the last step, intercepts."""
    size, model, width = len(state.theta), state.setup.model, state.setup.design.width
    own = list(range(model.predictors * width, size))
    intercepts = [block * width + width - 1 for block in range(model.predictors)]
    return np.column_stack([state.theta, np.eye(size)[:, [*intercepts, *own]], state.step])
