"""The end of a run: the posterior, the points that stand for it, and what may be said of both.

``trusted`` is false where the posterior should not be used: noise, or a search that has not arrived, is most of what
was found, or the points do not represent it.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from app.inference.fitting.fit import Fitted, fit_points
from app.inference.protocol import Array64, Posterior
from app.inference.variational.laplace_step import denoised
from app.inference.variational.mean_field import averaged, unrest
from app.inference.variational.rounds import bound
from app.inference.variational.state import State

MOST_NOISE: Final = 0.5
"""Of the nats between the prior's mean and what was found."""
MOST_FIT: Final = 1.0
"""Nats between the posterior and the points'."""


def closed(rng: np.random.Generator, state: State) -> State:
    """The posterior, points fitted to it, and how far noise has moved it."""
    setup = state.setup
    mean, log_sd = averaged(state.belief)
    spread = np.exp(log_sd)
    whitened = _whitened_precision(state, mean, spread)
    precision, covariance = whitened / np.outer(spread, spread), np.linalg.inv(whitened) * np.outer(spread, spread)
    names = setup.model.parameter_names([column.name for column in setup.design.columns])
    full = setup.plan.steps > setup.scores
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
            within_bounds=setup.plan.parameters["within_bounds"],
            total=setup.slots,
        ),
        noise_kl=_noise_kl(state, precision, covariance),
        learned=0.5 * float(mean @ precision @ mean),
    )


def _whitened_precision(state: State, mean: Array64, spread: Array64) -> Array64:
    """The posterior's precision ``(D, D)`` in units of ``spread`` (D,), prior included."""
    setup = state.setup
    asked = setup.plan.steps - setup.scores
    if not asked:
        return np.eye(len(mean))
    scale = 1 / (setup.mechanism.sampling_rate * asked)
    noise = setup.mechanism.noise_multiplier * bound(setup) * scale * np.sqrt(asked)
    found = denoised(state.information * scale, noise) + setup.prior.precision(mean) * np.outer(spread, spread)
    return 0.5 * (found + found.T)


def _noise_kl(state: State, precision: Array64, covariance: Array64) -> float:
    """Nats by which noise, or a search that has not arrived, moves the mean: an estimate from the answers alone.

    The larger of what an average over all answers would leave, and of what the tail's own unrest shows: how far its
    halves are apart after the Newton step that the gradients of each ask for, so that slow searches count, too. (To
    take that step gains nothing: the climb's slowness damps noise and the bias of clipping, which Newton steps take
    whole.)
    """
    mechanism = state.setup.mechanism
    apart, gradient_apart = unrest(state.belief)
    gap = apart + covariance @ gradient_apart
    single = mechanism.noise_multiplier * state.clip / mechanism.sampling_rate
    least = 0.5 * single**2 / state.setup.scores * float(np.trace(covariance))
    return max(least, 0.5 * float(gap @ precision @ gap) / 4)


def diagnostics(state: State, points: Fitted) -> dict[str, Any]:
    total = float(points.weight.sum())
    finite = bool(np.isfinite([points.kl, state.noise_kl, state.learned]).all())
    little = state.noise_kl <= MOST_NOISE * max(state.learned, 1.0) and points.kl <= MOST_FIT
    return {
        "trusted": finite and bool(little),
        "fit_kl": _stated(points.kl),
        "noise_kl": _stated(state.noise_kl),
        "represents_every_direction": state.setup.plan.size >= state.setup.model.smallest_exact,
        "effective_size": _stated(total**2 / max(float(np.square(points.weight).sum()), 1e-300)),
        "total_weight": _stated(total),
        "iterations": state.done,
        "final_clip": _stated(state.clip),
    }


def _stated(value: float) -> float:
    """Four significant digits: what leaves is no finer than it is known. What is not finite is stated as -1."""
    return float(f"{value:.4g}") if np.isfinite(value) else -1.0
