"""The end of a run: last Newton step, posterior, fitted points, diagnostics and reliability.

A release is not calibrated if most of it is noise, or the search has not converged; if answers hardly exceed their
noise (:mod:`app.inference.methods.dp_vi.significance`); if the points do not represent the posterior; if the posterior
has no correlations, because mean-field variances are too small; or if residuals have no bound, so clipping cuts them.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.inference.core import reasons
from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.model import Array64
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade, Posterior, Pseudocoreset, judge
from app.inference.fitting.fit import Fitted, fit_points
from app.inference.methods.dp_vi.laplace_step import denoise
from app.inference.methods.dp_vi.mean_field import average_tail, compare_halves
from app.inference.methods.dp_vi.significance import LEAST_SIGNIFICANCE, measure_matrix_significance
from app.inference.methods.dp_vi.state import State
from app.inference.methods.dp_vi.step import bound_information
from app.inference.models.residuals import UnboundedTargets
from app.inference.post.diagnostics import (
    MOST_FIT,
    compute_bearable_noise,
    compute_effective_size,
    round_by_parameter,
    round_stated,
)
from app.inference.post.doubt import combine_errors

REMAINING_ERROR: Final = 0.3
"""Share of a last step's nats that remains as error, because the information is not known exactly."""


def close(rng: np.random.Generator, state: State) -> State:
    """Compute the posterior, fit points to it, and estimate the error by noise."""
    setup = state.setup
    mean, log_sd = average_tail(state.approximation)
    spread = np.exp(log_sd)
    whitened = _compute_whitened_precision(state, mean, spread)
    precision, covariance = whitened / np.outer(spread, spread), np.linalg.inv(whitened) * np.outer(spread, spread)
    names = setup.model.parameter_names([column.name for column in setup.design.columns])
    full = setup.plan.steps > setup.scores
    step, share = compute_last_step(state, precision, covariance) if full else (np.zeros_like(mean), 0.0)
    mean = mean + share * step
    return replace(
        state,
        posterior=Posterior(names, mean, covariance if full else covariance.diagonal().copy()),
        fitted=fit_points(
            setup.model,
            setup.design,
            setup.prior,
            mean,
            precision,
            setup.plan.size,
            rng,
            within_bounds=setup.plan.parameters[WITHIN_BOUNDS.name],
            total=setup.slots,
        ),
        noise_kl=_estimate_error_nats(state, precision, covariance, share),
        noise_in_sds=_estimate_errors_in_sds(state, covariance, share),
        learned=0.5 * float((mean - setup.prior.mean) @ precision @ (mean - setup.prior.mean)),
        doubt=_cover_errors(state, covariance, share),
    )


def compute_last_step(state: State, precision: Array64, covariance: Array64) -> tuple[Array64, float]:
    """Compute the Newton step ``(D,)`` of the averaged gradients, and the share to take.

    The share, in [0, 1), is the part of the step's nats that exceeds the noise.
    """
    step = covariance @ state.approximation.sums[:, 2].sum(axis=0) / sum(state.approximation.counts)
    nats = 0.5 * float(step @ precision @ step)
    noise = 0.5 * _noise(state, sum(state.approximation.counts)) ** 2 * float(np.trace(covariance))
    return step, max(0.0, 1 - noise / nats) if nats > 0 and math.isfinite(nats) else 0.0


def _compute_whitened_precision(state: State, mean: Array64, spread: Array64) -> Array64:
    """Compute the posterior's precision ``(D, D)`` in units of ``spread`` ``(D,)``, prior included."""
    setup = state.setup
    if setup.plan.steps == setup.scores:
        return np.eye(len(mean))
    precision = denoise(*_average_information(state)) + setup.prior.precision(mean) * np.outer(spread, spread)
    return 0.5 * (precision + precision.T)


def _average_information(state: State) -> tuple[Array64, float]:
    """Average the answered information matrices ``(D, D)``; return it and the noise of a diagonal value."""
    setup = state.setup
    count = setup.plan.steps - setup.scores
    scale = 1 / (setup.mechanism.sampling_rate * count)
    noise = setup.mechanism.noise_multiplier * bound_information(setup) * scale * math.sqrt(count)
    return state.information * scale, noise


def _measure_significance(state: State) -> float:
    """Measure the significance of the answers in standard deviations of the noise."""
    if state.setup.plan.steps == state.setup.scores:
        return state.significance.deviations
    return measure_matrix_significance(*_average_information(state))


def _estimate_error_nats(state: State, precision: Array64, covariance: Array64, share: float) -> float:
    """Estimate the error of the mean in nats, from answers alone.

    The error is by noise or by lack of convergence.
    """
    least = 0.5 * _noise(state, state.setup.scores) ** 2 * float(np.trace(covariance))
    return max(least, *(0.5 * float(step @ precision @ step) for step in _measure_drift(state, covariance, share)))


def _estimate_errors_in_sds(state: State, covariance: Array64, share: float) -> Array64:
    """Estimate the error of each parameter in posterior standard deviations ``(D,)``."""
    variance = covariance.diagonal()
    least = _noise(state, state.setup.scores) * np.sqrt(np.square(covariance).sum(axis=1))
    return np.asarray(np.max([least, *np.abs(_measure_drift(state, covariance, share))], axis=0) / np.sqrt(variance))


def _cover_errors(state: State, covariance: Array64, share: float) -> Array64 | None:
    """Compute the doubt ``(D, D)``: the covariance of the noise plus the squares of both drifts.

    Each variance is at least the square of the error that :func:`_estimate_errors_in_sds` states.
    """
    noise = _noise(state, state.setup.scores) ** 2 * (covariance @ covariance)
    return combine_errors(noise, _measure_drift(state, covariance, share))


def _noise(state: State, count: int) -> float:
    """Compute the standard deviation of the noise in the mean score of ``count`` answers."""
    mechanism = state.setup.mechanism
    return mechanism.noise_multiplier * state.clip / (mechanism.sampling_rate * math.sqrt(count))


def _measure_drift(state: State, covariance: Array64, share: float) -> Array64:
    """Estimate the error of the mean in two ways, ``(2, D)``.

    The first is half of the difference between the two halves of the last iterates, each after the Newton step of its
    gradients. The second is the remaining part of the Newton step of all gradients; a part of the step that was taken
    counts as well, because the information is not exact.
    """
    difference, gradient_difference = compare_halves(state.approximation)
    gradient = state.approximation.sums[:, 2].sum(axis=0) / sum(state.approximation.counts)
    rest = math.sqrt(1 - share * (1 - REMAINING_ERROR))
    return np.array([0.5 * (difference + covariance @ gradient_difference), rest * covariance @ gradient])


def make_release(state: State) -> Pseudocoreset:
    """Release the posterior and the points that represent it.

    Raises:
        ValueError: before the last query has been answered.
    """
    points, design, posterior = state.fitted, state.setup.design, state.posterior
    if points is None or posterior is None:
        raise ValueError("a posterior is released after the last query")
    reliability = judge(_find_reasons(state, points))
    diagnostics = {"trusted": reliability.is_calibrated, **_diagnostics(state, points)}
    y = design.decode_targets(points.y)
    return Pseudocoreset(
        points.u, y, points.weight, design.columns, diagnostics, posterior, doubt=state.doubt, reliability=reliability
    )


def _find_reasons(state: State, points: Fitted) -> Iterator[tuple[Reason, Grade]]:
    """Yield each reason against intervals, with the best grade that it allows."""
    if not np.isfinite([points.kl, state.noise_kl, state.learned]).all():
        yield reasons.NOT_FINITE, Grade.NOT_USABLE
    if state.doubt is None:
        yield reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY
    if not state.noise_kl <= compute_bearable_noise(state.learned):
        yield reasons.NOISE_DOMINATES, Grade.NOT_USABLE
    if not _measure_significance(state) >= LEAST_SIGNIFICANCE:
        yield reasons.FEW_ROWS, Grade.NOT_USABLE
    if state.setup.plan.steps == state.setup.scores:
        yield reasons.NO_CORRELATIONS, Grade.CENTRE_ONLY
    if not points.kl <= MOST_FIT:
        yield reasons.POINTS_DIFFER, Grade.CENTRE_ONLY
    # Clipping cuts far residuals, and no answer shows the bias that skewed ones leave.
    if isinstance(state.setup.model, UnboundedTargets) and not state.setup.model.redescending:
        yield reasons.BOUNDS_CUT, Grade.CENTRE_ONLY


def _diagnostics(state: State, points: Fitted) -> dict[str, Any]:
    """Compute the figures of the posterior and of the ``points`` that represent it."""
    return {
        "fit_kl": round_stated(points.kl),
        "noise_kl": round_stated(state.noise_kl),
        "noise_in_posterior_sds": round_by_parameter(state.setup.model, state.setup.design, state.noise_in_sds),
        "represents_every_direction": state.setup.plan.size >= state.setup.model.smallest_exact,
        "effective_size": round_stated(compute_effective_size(points.weight)),
        "total_weight": round_stated(float(points.weight.sum())),
        "iterations": state.done,
        "final_clip": round_stated(state.clip),
    }
