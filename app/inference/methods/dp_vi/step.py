"""One query and what follows from its answer: a step of the climb, or one more look at the information."""

from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.query import Oracle
from app.inference.methods.dp_vi.knobs import AVERAGE, CLIP, STEP
from app.inference.methods.dp_vi.mean_field import ascend, average_tail, draw, record
from app.inference.methods.dp_vi.population import typical_clip
from app.inference.methods.dp_vi.state import Setup, State
from app.inference.private_zone.queries import ClippedScoreSum, InformationSum

BOUND: Final = 2.0
"""Of a unit's information, relative to the average of all units in the belief's own metric."""


def run_iteration(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    """One iteration of variational inference."""
    setup, belief = state.setup, state.belief
    clip = setup.plan.parameters.get(CLIP.name)
    if clip is None:
        found = typical_clip(setup.model, rng, setup.population, belief.mean, setup.rows_per_unit)
        clip = float(np.clip(found, *setup.clips)) if np.isfinite(found) else state.clip
    theta, deviation = draw(rng, belief)
    answer = oracle.ask(ClippedScoreSum(theta, np.eye(len(theta)), clip))
    gradient = answer / setup.mechanism.sampling_rate + setup.prior.gradient(theta)
    belief = ascend(belief, gradient, deviation, setup.plan.parameters[STEP.name], setup.box)
    tail = max(1, round(setup.plan.parameters[AVERAGE.name] * setup.scores))
    place = state.done - (setup.scores - tail)
    if place >= 0:
        belief = record(belief, gradient, int(2 * place >= tail - 1))
    noise = setup.mechanism.noise_multiplier * clip
    return replace(state, belief=belief, clip=clip, evidence=state.evidence.with_score(answer, deviation, noise))


def ask_information(state: State, oracle: Oracle) -> State:
    """One more answer about the information at the mean."""
    mean, log_sd = average_tail(state.belief)
    answer = oracle.ask(InformationSum(mean, np.diag(np.exp(log_sd)), bound_information(state.setup)))
    return replace(state, information=state.information + answer)


def bound_information(setup: Setup) -> float:
    """R, the largest Frobenius norm of a unit's information in the metric of the belief."""
    return BOUND * setup.model.dimension / setup.slots
