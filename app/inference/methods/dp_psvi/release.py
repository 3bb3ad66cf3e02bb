"""The end of a run of DP-PSVI: what may be said of it, from what was asked and answered alone."""

import math
from typing import Any, Final

from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.methods.dp_psvi.arrival import (
    LEAST_KEPT,
    has_arrived,
    measure_kept_share,
    noise_in_sds,
    noise_nats,
    tellable,
)
from app.inference.methods.dp_psvi.state import State
from app.inference.post.diagnostics import effective_size, round_stated, stated_by_parameter
from app.inference.post.laplace import laplace

MODE_TOLERANCE: Final = 4.0
"""Of the squared Newton decrement *before* the last step, which squares it again."""
_END = 0.3
"""Of the run: what residuals ask for there says whether it has arrived."""


def at_the_end(state: State) -> bool:
    """Whether the next iteration belongs to it."""
    return state.done >= state.setup.plan.steps - _tail(state.setup.plan)


def diagnostics(state: State, weights: Array64) -> dict[str, Any]:
    """Of the last iterate, whose weights are ``weights`` ``(M,)``."""
    setup, plan, mechanism = state.setup, state.setup.plan, state.setup.plan.mechanism
    assert mechanism is not None
    rows = setup.model.fold(state.u, state.y)
    found = laplace(setup.model, rows, weights, setup.prior, state.mode, tolerance=MODE_TOLERANCE)
    information, tail = found.factor @ found.factor.T, _tail(plan)
    step, noise = state.asked / tail, mechanism.noise_multiplier * state.clip / mechanism.sampling_rate
    nats = noise_nats(step, information, noise, plan.answer_length, tail)
    learned = 0.5 * float(found.mean @ information @ found.mean)
    off = noise_in_sds(step, found.factor, noise, plan.answer_length, tail)
    told = measure_kept_share(setup.model, setup.population, state.draws, state.clip, setup.rows_per_unit) >= LEAST_KEPT
    return {
        "trusted": told and has_arrived(nats, learned) and tellable(setup.model, setup.design, state.u, state.mode),
        "noise_kl": round_stated(nats),
        "noise_in_posterior_sds": stated_by_parameter(setup.model, setup.design, off),
        "represents_every_direction": plan.size >= setup.model.smallest_exact,
        "iterations": state.done,
        "total_weight": round_stated(float(weights.sum())),
        "effective_size": round_stated(effective_size(weights)),
        "final_clip": round_stated(state.clip),
    }


def _tail(plan: MechanismPlan) -> int:
    return math.ceil(_END * plan.steps)
