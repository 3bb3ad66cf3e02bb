"""Diagnostics of a run of DP-PSVI, from queries and answers alone."""

import math
from typing import Any, Final

from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.methods.dp_psvi.convergence import (
    LEAST_UNCLIPPED,
    bound_error_in_sds,
    bound_error_nats,
    has_converged,
    is_clipping_unbiased,
    measure_unclipped_share,
)
from app.inference.methods.dp_psvi.state import State
from app.inference.post.diagnostics import effective_size, round_stated, stated_by_parameter
from app.inference.post.laplace import laplace

MODE_TOLERANCE: Final = 4.0
"""Tolerance of the squared Newton decrement *before* the last step, which squares it once more."""
_END = 0.3
"""Share of the run, at its end, whose residuals decide on convergence."""


def is_in_tail(state: State) -> bool:
    """Whether the next iteration belongs to the end of the run."""
    return state.done >= state.setup.plan.steps - _tail(state.setup.plan)


def diagnostics(state: State, weights: Array64) -> dict[str, Any]:
    """Compute the diagnostics of the last iterate, whose ``weights`` are ``(M,)``."""
    setup, plan, mechanism = state.setup, state.setup.plan, state.setup.plan.mechanism
    assert mechanism is not None
    rows = setup.model.fold(state.u, state.y)
    posterior = laplace(setup.model, rows, weights, setup.prior, state.mode, tolerance=MODE_TOLERANCE)
    information, tail = posterior.factor @ posterior.factor.T, _tail(plan)
    step, noise = state.newton_steps / tail, mechanism.noise_multiplier * state.clip / mechanism.sampling_rate
    nats = bound_error_nats(step, information, noise, plan.answer_length, tail)
    learned = 0.5 * float(posterior.mean @ information @ posterior.mean)
    errors = bound_error_in_sds(step, posterior.factor, noise, plan.answer_length, tail)
    unclipped = measure_unclipped_share(setup.model, setup.population, state.draws, state.clip, setup.rows_per_unit)
    is_unbiased = unclipped >= LEAST_UNCLIPPED and is_clipping_unbiased(setup.model, setup.design, state.u, state.mode)
    return {
        "trusted": is_unbiased and has_converged(nats, learned),
        "noise_kl": round_stated(nats),
        "noise_in_posterior_sds": stated_by_parameter(setup.model, setup.design, errors),
        "represents_every_direction": plan.size >= setup.model.smallest_exact,
        "iterations": state.done,
        "total_weight": round_stated(float(weights.sum())),
        "effective_size": round_stated(effective_size(weights)),
        "final_clip": round_stated(state.clip),
    }


def _tail(plan: MechanismPlan) -> int:
    return math.ceil(_END * plan.steps)
