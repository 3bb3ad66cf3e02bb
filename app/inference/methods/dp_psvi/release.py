"""The release of a run of DP-PSVI, with diagnostics from queries and answers alone.

With ``beta``, the points represent the rows' beta-posterior, but their posterior under the model itself is used. The
difference of the two is a part of the stated error, and a large divergence is a reason against intervals.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from app.inference.core import reasons
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade, Pseudocoreset, judge
from app.inference.fitting.target import Target, compute_divergence, compute_inverse_root
from app.inference.methods.dp_psvi.convergence import (
    LEAST_UNCLIPPED,
    bound_error_in_sds,
    bound_error_nats,
    cover_error,
    has_converged,
    is_clipping_unbiased,
    measure_unclipped_share,
)
from app.inference.methods.dp_psvi.robust import bound_norm
from app.inference.methods.dp_psvi.state import State
from app.inference.post.diagnostics import (
    MOST_FIT,
    compute_bearable_noise,
    compute_effective_size,
    round_by_parameter,
    round_stated,
)
from app.inference.post.laplace import Laplace, fit_laplace

MODE_TOLERANCE: Final = 4.0
"""Tolerance of the squared Newton decrement *before* the last step, which squares it once more."""
_END = 0.3
"""Share of the run, at its end, whose residuals decide on convergence."""


def is_in_tail(state: State) -> bool:
    """Whether the next iteration belongs to the end of the run."""
    return state.done >= state.setup.plan.steps - _tail(state.setup.plan)


def make_release(state: State) -> Pseudocoreset:
    """Make the release of the last iterate."""
    setup, weights = state.setup, state.weights
    error = _estimate_error(state, weights)
    reliability = judge(_find_reasons(state, error))
    return Pseudocoreset(
        state.u,
        setup.design.decode_targets(state.y),
        weights,
        setup.design.columns,
        {
            "trusted": reliability.is_calibrated,
            "noise_kl": round_stated(error.nats),
            "noise_in_posterior_sds": round_by_parameter(setup.model, setup.design, error.in_sds),
            "represents_every_direction": setup.plan.size >= setup.model.smallest_exact,
            "iterations": state.done,
            "total_weight": round_stated(float(weights.sum())),
            "effective_size": round_stated(compute_effective_size(weights)),
            "final_clip": round_stated(state.clip),
            **({"fit_kl": round_stated(error.misfit)} if setup.beta else {}),
        },
        doubt=error.doubt,
        reliability=reliability,
    )


@dataclass(frozen=True, slots=True)
class _Error:
    """The estimated error of the mean, by noise and by lack of convergence.

    ``doubt`` ``(D, D)`` is the covariance of the noise plus the square of the estimated Newton step. ``learned`` is the
    distance in nats between the prior's mean and the posterior's. ``misfit`` is the divergence in nats between the
    points' posterior and their beta-posterior; 0 without ``beta``.
    """

    nats: float
    learned: float
    in_sds: Array64  # (D,)
    doubt: Array64 | None
    misfit: float = 0.0


def _estimate_error(state: State, weights: Array64) -> _Error:
    setup, plan, mechanism = state.setup, state.setup.plan, state.setup.plan.mechanism
    assert mechanism is not None
    rows = setup.model.fold(state.u, state.y)
    posterior = fit_laplace(setup.model, rows, weights, setup.prior, state.mode, tolerance=MODE_TOLERANCE)
    information, tail = posterior.factor @ posterior.factor.T, _tail(plan)
    learned = posterior.mean - setup.prior.mean
    step, noise = state.newton_steps / tail, mechanism.noise_multiplier * state.clip / mechanism.sampling_rate
    used = None
    if setup.beta:
        used = fit_laplace(setup.plain, rows, weights, setup.prior, posterior.mean)
        step = step - (used.mean - posterior.mean)
    error = _Error(
        bound_error_nats(step, information, noise, plan.answer_length, tail),
        0.5 * float(learned @ information @ learned),
        bound_error_in_sds(step, posterior.factor, noise, plan.answer_length, tail),
        cover_error(step, posterior.factor, noise, plan.answer_length, tail),
    )
    return error if used is None else _compare_with_used(error, used, Target(posterior.mean, information))


def _compare_with_used(error: _Error, used: Laplace, target: Target) -> _Error:
    """State the error for the posterior that is used.

    It is in standard deviations of that posterior, whose divergence from ``target`` is added.
    """
    root = compute_inverse_root(used.factor @ used.factor.T)
    if root is None or error.doubt is None:
        return replace(error, misfit=math.inf)
    variances = np.square(root).sum(axis=0)
    return replace(
        error,
        in_sds=np.sqrt(error.doubt.diagonal() / variances),
        misfit=compute_divergence(used.mean, root, target),
    )


def _find_reasons(state: State, error: _Error) -> Iterator[tuple[Reason, Grade]]:
    """Yield each reason against intervals, with the best grade that it allows."""
    setup = state.setup
    if error.doubt is None:
        yield reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY
    if setup.beta:
        yield reasons.BETA_CENTRE, Grade.CENTRE_ONLY
    if not error.misfit <= MOST_FIT:
        yield reasons.POINTS_DIFFER, Grade.CENTRE_ONLY
    if not error.nats <= compute_bearable_noise(error.learned):
        yield reasons.NOISE_DOMINATES, Grade.NOT_USABLE
    elif not has_converged(error.nats, error.learned):
        yield reasons.NOT_CONVERGED, Grade.CENTRE_ONLY
    unclipped = measure_unclipped_share(setup.model, setup.population, state.draws, state.clip, setup.rows_per_unit)
    if not unclipped >= LEAST_UNCLIPPED:  # only directions are left, which are consistent with many posteriors
        yield reasons.BOUNDS_CUT, Grade.NOT_USABLE
    longest = bound_norm(setup.model, len(state.draws), setup.rows_per_unit)
    if state.clip < longest and not is_clipping_unbiased(setup.model, setup.design, state.u, state.mode):
        yield reasons.BOUNDS_CUT, Grade.CENTRE_ONLY


def _tail(plan: MechanismPlan) -> int:
    return math.ceil(_END * plan.steps)
