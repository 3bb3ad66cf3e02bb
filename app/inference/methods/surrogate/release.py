"""The release of a surrogate: points, diagnostics and reliability, from noised answers alone.

A release is not calibrated in these cases:

- The last move, or the move by the last score alone, is much longer than noise explains: the search has not converged.
- Noise is more than half of the gain.
- Only the information of single columns was asked, so correlations are unknown.
- The points do not represent the surrogate.
- The stated noise is not credible (:mod:`app.inference.methods.surrogate.credibility`).
- Noise could hide rows (:mod:`app.inference.methods.surrogate.hidden_rows`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.inference.core import reasons
from app.inference.core.model import Array64
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade, Pseudocoreset, judge
from app.inference.fitting.fit import Fitted, fit_points
from app.inference.methods.surrogate.credibility import believable, counts_units, has_labels
from app.inference.methods.surrogate.doubt import doubted_noise, population_information
from app.inference.methods.surrogate.hidden_rows import shows_enough
from app.inference.methods.surrogate.state import State
from app.inference.post.diagnostics import round_by_parameter, round_stated
from app.inference.post.doubt import state_doubt

MOST_SURPRISE = 6.0
MOST_NOISE = 0.5
"""Of the nats that were learned."""
RESOLVED = 0.3
"""Resolution below which an information matrix counts as learned."""
MOST_FIT = 1.0
"""Nats between the surrogate and the points."""


def ended(rng: np.random.Generator, state: State) -> State:
    """Fit the points after the last answer."""
    state = replace(state, fitted=fitted(rng, state))
    with np.errstate(all="ignore"):
        return replace(state, population_information=population_information(rng, state))


def fitted(rng: np.random.Generator, state: State) -> Fitted:
    """Fit as many points to the surrogate as were requested."""
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
    """Make the release.

    Raises:
        ValueError: before the last query has been answered.
    """
    points, setup = state.fitted, state.setup
    if points is None:
        raise ValueError("a surrogate is released after its last query")
    with np.errstate(all="ignore"):
        noise = _measure_noise(state)
        reliability = judge(_find_reasons(state, points, noise))
        diagnostics = _diagnostics(state, points, noise, trusted=reliability.is_calibrated)
    y, design = setup.design.decode_targets(points.y), setup.design.columns
    doubt = state_doubt(noise.covariance)
    return Pseudocoreset(points.u, y, points.weight, design, diagnostics, doubt=doubt, reliability=reliability)


@dataclass(frozen=True, slots=True)
class _Noise:
    """The noise in the mode: its covariance ``(D, D)``, its expected nats, and the nats that were learned.

    The nats are ``tr(H covariance) / 2`` for the information H.
    """

    covariance: Array64
    nats: float
    learned: float


def _measure_noise(state: State) -> _Noise:
    inverse, noise = np.linalg.inv(state.information), doubted_noise(state, _noise(state))
    nats = 0.5 * float(np.sum(np.linalg.solve(state.information, noise).diagonal()))
    return _Noise(inverse @ noise @ inverse, nats, _learned(state))


def _find_reasons(state: State, points: Fitted, noise: _Noise) -> Iterator[tuple[Reason, Grade]]:
    """Yield each reason against intervals, with the best grade that it allows.

    The information of a label is bounded. So the stated noise is wrong by a factor at worst, and the centre's
    error remains below the gain. The information of a number is not bounded, so the centre may be wrong by any factor.
    """
    setup, misjudged = state.setup, Grade.CENTRE_ONLY if has_labels(state) else Grade.NOT_USABLE
    if not all(np.isfinite([points.kl, noise.nats, noise.learned, state.surprise])):
        yield reasons.NOT_FINITE, Grade.NOT_USABLE
    if state_doubt(noise.covariance) is None:
        yield reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY
    if not noise.nats <= MOST_NOISE * max(noise.learned, 1.0):
        yield reasons.NOISE_DOMINATES, Grade.NOT_USABLE
    if not state.surprise <= MOST_SURPRISE:
        yield reasons.NOT_CONVERGED, misjudged
    if not counts_units(state):
        yield reasons.FEW_ROWS, misjudged
    elif not believable(state):
        yield reasons.NOISE_NOT_KNOWN, Grade.NOT_USABLE
    if setup.columnwise:
        yield reasons.NO_CORRELATIONS, Grade.CENTRE_ONLY
    if not points.kl <= MOST_FIT:
        yield reasons.POINTS_DIFFER, Grade.CENTRE_ONLY
    if setup.design.intercept and not shows_enough(state, noise.nats):
        yield reasons.HIDDEN_ROWS, Grade.CENTRE_ONLY


def _diagnostics(state: State, points: Fitted, noise: _Noise, *, trusted: bool) -> dict[str, Any]:
    setup, total = state.setup, float(points.weight.sum())
    return {
        "trusted": trusted,
        "fit_kl": round_stated(points.kl),
        "noise_kl": round_stated(noise.nats),
        "last_move": round_stated(state.surprise),
        "noise_in_posterior_sds": _by_parameter(state, noise),
        "represents_every_direction": setup.size >= setup.model.smallest_exact,
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


def _by_parameter(state: State, noise: _Noise) -> dict[str, float]:
    """How far noise may have moved each parameter: a standard deviation, in posterior standard deviations."""
    variance = np.linalg.inv(state.information).diagonal()
    moved = np.sqrt(np.maximum(noise.covariance.diagonal(), 0) / variance)
    return round_by_parameter(state.setup.model, state.setup.design, moved)
