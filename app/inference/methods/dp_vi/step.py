"""Steps of variational inference: a gradient step, or a query of the information."""

from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.query import Oracle
from app.inference.methods.dp_vi.knobs import AVERAGE, CLIP, STEP
from app.inference.methods.dp_vi.mean_field import ascend, average_tail, draw, record
from app.inference.methods.dp_vi.population import compute_clip
from app.inference.methods.dp_vi.state import Setup, State
from app.inference.private_zone.queries import ClippedScoreSum, InformationSum

BOUND: Final = 2.0
"""Bound on a unit's information, relative to the average of all units, in the metric of the approximation."""


def run_iteration(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    """Ask a sum of scores and take a gradient step."""
    setup, approximation = state.setup, state.approximation
    clip = setup.plan.parameters.get(CLIP.name)
    if clip is None:
        typical = compute_clip(setup.model, rng, setup.population, approximation.mean, setup.rows_per_unit)
        clip = float(np.clip(typical, *setup.clips)) if np.isfinite(typical) else state.clip
    theta, deviation = draw(rng, approximation)
    answer = oracle.ask(ClippedScoreSum(theta, np.eye(len(theta)), clip))
    gradient = answer / setup.mechanism.sampling_rate + setup.prior.gradient(theta)
    approximation = ascend(approximation, gradient, deviation, setup.plan.parameters[STEP.name], setup.box)
    tail = max(1, round(setup.plan.parameters[AVERAGE.name] * setup.scores))
    place = state.done - (setup.scores - tail)
    if place >= 0:
        approximation = record(approximation, gradient, int(2 * place >= tail - 1))
    noise = setup.mechanism.noise_multiplier * clip
    significance = state.significance.with_score(answer, deviation, noise)
    return replace(state, approximation=approximation, clip=clip, significance=significance)


def ask_information(state: State, oracle: Oracle) -> State:
    """Ask an information matrix at the averaged mean, and add the answer."""
    mean, log_sd = average_tail(state.approximation)
    answer = oracle.ask(InformationSum(mean, np.diag(np.exp(log_sd)), bound_information(state.setup)))
    return replace(state, information=state.information + answer)


def bound_information(setup: Setup) -> float:
    """Compute R, the largest Frobenius norm of a unit's information in the approximation's metric."""
    return BOUND * setup.model.dimension / setup.slots
