"""The end of a surrogate: points that represent it, and what may be said of it, all from noised answers.

``trusted`` is false where the result should not be used as a posterior: the last move, or the one that the last score
alone would make, is much longer than noise explains (the search had not arrived), noise is most of what was found,
correlations between features were never asked for, the points do not represent the surrogate, or what is said of noise
cannot be believed (:mod:`app.inference.methods.surrogate.credibility`) or may be little beside what noise hides
(:mod:`app.inference.methods.surrogate.hidden_rows`).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.release import Pseudocoreset
from app.inference.fitting.fit import Fitted, fit_points
from app.inference.methods.surrogate.credibility import believable
from app.inference.methods.surrogate.doubt import doubted_noise, population_information
from app.inference.methods.surrogate.hidden_rows import shows_enough
from app.inference.methods.surrogate.state import State
from app.inference.post.diagnostics import round_stated, stated_by_parameter

MOST_SURPRISE = 6.0
MOST_NOISE = 0.5
"""Of the nats that were learned."""
RESOLVED = 0.3
"""Resolution below which an information matrix counts as learned."""
MOST_FIT = 1.0
"""Nats between the surrogate and the points."""


def ended(rng: np.random.Generator, state: State) -> State:
    """After the last answer, with the points for what is believed."""
    state = replace(state, fitted=fitted(rng, state))
    with np.errstate(all="ignore"):
        return replace(state, population_information=population_information(rng, state))


def fitted(rng: np.random.Generator, state: State) -> Fitted:
    """Points for the surrogate: as many as were asked for."""
    setup = state.setup
    return fit_points(
        setup.model,
        setup.design,
        setup.prior,
        state.theta,
        state.information,
        setup.size,
        rng,
        within_bounds=setup.within_bounds,
        total=state.rows,
    )


def released(state: State) -> Pseudocoreset:
    """What leaves.

    Raises:
        ValueError: before the last query has been answered.
    """
    points, setup = state.fitted, state.setup
    if points is None:
        raise ValueError("a surrogate is released after its last query")
    with np.errstate(all="ignore"):
        diagnostics = _diagnostics(state, points)
    y = setup.design.decode_targets(points.y)
    return Pseudocoreset(points.u, y, points.weight, setup.design.columns, diagnostics)


def _diagnostics(state: State, points: Fitted) -> dict[str, Any]:
    setup, total = state.setup, float(points.weight.sum())
    noise, learned = doubted_noise(state, _noise(state)), _learned(state)
    noise_nats = 0.5 * float(np.sum(np.linalg.solve(state.information, noise).diagonal()))
    represented = setup.size >= setup.model.smallest_exact
    finite = all(np.isfinite([points.kl, noise_nats, learned, state.surprise]))
    return {
        "trusted": bool(
            finite
            and not setup.columnwise
            and state.surprise <= MOST_SURPRISE
            and noise_nats <= MOST_NOISE * max(learned, 1.0)
            and points.kl <= MOST_FIT
            and believable(state)
            and (not setup.design.intercept or shows_enough(state, noise_nats))
        ),
        "fit_kl": round_stated(points.kl),
        "noise_kl": round_stated(noise_nats),
        "last_move": round_stated(state.surprise),
        "noise_in_posterior_sds": _by_parameter(state, noise),
        "represents_every_direction": represented,
        "knows_correlations": not setup.columnwise,
        "estimated_units" if setup.rows_per_unit == 1 else "estimated_rows": round_stated(state.rows),
        "effective_size": round_stated(total**2 / max(float(np.square(points.weight).sum()), 1e-300)),
        "total_weight": round_stated(total),
        "rounds": setup.schedule.rounds,
    }


def _learned(state: State) -> float:
    """Nats between the prior and what was found; of the information only where it stands out of its noise."""
    setup, theta = state.setup, state.theta
    learned = 0.5 * float(theta @ state.information @ theta)
    if setup.schedule.informed and setup.schedule.resolution > RESOLVED:
        return learned
    prior = setup.prior.precision(theta)
    ratios = np.linalg.solve(prior, state.information)
    return learned + 0.5 * float(np.trace(ratios) - len(theta) - np.linalg.slogdet(ratios)[1])


def _noise(state: State) -> Array64:
    """``K H^-1 G H^-1 K' variance`` in the precision's own coordinates, ``H (.) H``: the noise in the mode, ``(D, D)``.

    G is the noise's shape, H where directions are alike. By what is believed of H, whether or not that is right.
    """
    if state.mode is None:
        return state.information
    kept, information = state.mode.kept, state.information
    shape = information if state.mode.shape is None else state.mode.shape
    spread = kept @ np.linalg.solve(information, np.linalg.solve(information, shape).T) @ kept.T
    return np.asarray(state.mode.variance * information @ spread @ information)


def _by_parameter(state: State, noise: Array64) -> dict[str, float]:
    """How far noise may have moved each parameter: a standard deviation, in posterior standard deviations."""
    inverse = np.linalg.inv(state.information)
    moved = np.sqrt(np.maximum((inverse @ noise @ inverse).diagonal(), 0) / inverse.diagonal())
    return stated_by_parameter(state.setup.model, state.setup.design, moved)
