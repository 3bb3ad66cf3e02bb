"""The end of a run: a last step, the posterior, the points that stand for it, and what may be said of both.

``trusted`` is false where the posterior should not be used: noise, or a search that has not arrived, is most of what
was found, answers hardly exceed their noise (:mod:`app.inference.methods.dp_vi.significance`), or the points do not
represent the posterior.
"""

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.inference.core.bounds import WITHIN_BOUNDS
from app.inference.core.model import Array64
from app.inference.core.release import Posterior
from app.inference.fitting.fit import Fitted, fit_points
from app.inference.methods.dp_vi.laplace_step import denoise
from app.inference.methods.dp_vi.mean_field import average_tail, compare_halves
from app.inference.methods.dp_vi.significance import LEAST_SIGNIFICANCE, measure_matrix_significance
from app.inference.methods.dp_vi.state import State
from app.inference.methods.dp_vi.step import bound_information
from app.inference.post.diagnostics import MOST_FIT, bearable_noise, effective_size, round_stated, stated_by_parameter

WRONG: Final = 0.3
"""Of the nats of a last step, that what is not known of the information leaves."""


def close(rng: np.random.Generator, state: State) -> State:
    """The posterior, points fitted to it, and how far noise has moved it."""
    setup = state.setup
    mean, log_sd = average_tail(state.belief)
    spread = np.exp(log_sd)
    whitened = _whitened_precision(state, mean, spread)
    precision, covariance = whitened / np.outer(spread, spread), np.linalg.inv(whitened) * np.outer(spread, spread)
    names = setup.model.parameter_names([column.name for column in setup.design.columns])
    full = setup.plan.steps > setup.scores
    step, share = last_step(state, precision, covariance) if full else (np.zeros_like(mean), 0.0)
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
        noise_kl=_noise_kl(state, precision, covariance, share),
        noise_in_sds=_noise_in_sds(state, covariance, share),
        learned=0.5 * float(mean @ precision @ mean),
    )


def last_step(state: State, precision: Array64, covariance: Array64) -> tuple[Array64, float]:
    """The Newton step ``(D,)`` that the tail's gradients ask for, and the share of it that is no noise, [0, 1)."""
    step = covariance @ state.belief.sums[:, 2].sum(axis=0) / sum(state.belief.counts)
    asked = 0.5 * float(step @ precision @ step)
    noise = 0.5 * _noise(state, sum(state.belief.counts)) ** 2 * float(np.trace(covariance))
    return step, max(0.0, 1 - noise / asked) if asked > 0 and math.isfinite(asked) else 0.0


def _whitened_precision(state: State, mean: Array64, spread: Array64) -> Array64:
    """The posterior's precision ``(D, D)`` in units of ``spread`` (D,), prior included."""
    setup = state.setup
    if setup.plan.steps == setup.scores:
        return np.eye(len(mean))
    found = denoise(*_measured(state)) + setup.prior.precision(mean) * np.outer(spread, spread)
    return 0.5 * (found + found.T)


def _measured(state: State) -> tuple[Array64, float]:
    """The mean of the information matrices that were asked for, ``(D, D)``, and the noise in each diagonal value."""
    setup = state.setup
    asked = setup.plan.steps - setup.scores
    scale = 1 / (setup.mechanism.sampling_rate * asked)
    return state.information * scale, setup.mechanism.noise_multiplier * bound_information(setup) * scale * math.sqrt(
        asked
    )


def _evidence(state: State) -> float:
    """Standard deviations of noise by which answers exceed it."""
    if state.setup.plan.steps == state.setup.scores:
        return state.evidence.deviations
    return measure_matrix_significance(*_measured(state))


def _noise_kl(state: State, precision: Array64, covariance: Array64, share: float) -> float:
    """Nats by which noise, or a search that has not arrived, moves the mean: an estimate from the answers alone."""
    least = 0.5 * _noise(state, state.setup.scores) ** 2 * float(np.trace(covariance))
    return max(least, *(0.5 * float(step @ precision @ step) for step in _measure_drift(state, covariance, share)))


def _noise_in_sds(state: State, covariance: Array64, share: float) -> Array64:
    """The same by parameter, in posterior standard deviations ``(D,)``."""
    variance = covariance.diagonal()
    least = _noise(state, state.setup.scores) * np.sqrt(np.square(covariance).sum(axis=1))
    return np.asarray(np.max([least, *np.abs(_measure_drift(state, covariance, share))], axis=0) / np.sqrt(variance))


def _noise(state: State, count: int) -> float:
    """Standard deviation of the noise in the mean score of ``count`` answers."""
    mechanism = state.setup.mechanism
    return mechanism.noise_multiplier * state.clip / (mechanism.sampling_rate * math.sqrt(count))


def _measure_drift(state: State, covariance: Array64, share: float) -> Array64:
    """How far off the tail's iterates show the mean to be ``(2, D)``, noise beyond all answers' average included.

    Half of the way between its halves after the Newton step that the gradients of each ask for; and the Newton step
    that all its gradients ask for, less what was taken of it: of that a part is wrong, since the matrix is.
    """
    apart, gradient_apart = compare_halves(state.belief)
    gradient = state.belief.sums[:, 2].sum(axis=0) / sum(state.belief.counts)
    left = math.sqrt(1 - share * (1 - WRONG))
    return np.array([0.5 * (apart + covariance @ gradient_apart), left * covariance @ gradient])


def diagnostics(state: State, points: Fitted) -> dict[str, Any]:
    """What is stated of the posterior, and of the ``points`` that stand for it."""
    finite = bool(np.isfinite([points.kl, state.noise_kl, state.learned]).all())
    little = state.noise_kl <= bearable_noise(state.learned) and points.kl <= MOST_FIT
    return {
        "trusted": finite and bool(little) and _evidence(state) >= LEAST_SIGNIFICANCE,
        "fit_kl": round_stated(points.kl),
        "noise_kl": round_stated(state.noise_kl),
        "noise_in_posterior_sds": stated_by_parameter(state.setup.model, state.setup.design, state.noise_in_sds),
        "represents_every_direction": state.setup.plan.size >= state.setup.model.smallest_exact,
        "effective_size": round_stated(effective_size(points.weight)),
        "total_weight": round_stated(float(points.weight.sum())),
        "iterations": state.done,
        "final_clip": round_stated(state.clip),
    }
