"""The end of a run: points that represent the belief, their stated error and their reliability.

All of it is computed from noised answers and declared facts, so it costs no budget.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.inference.core import reasons
from app.inference.core.dependence import is_dependent, spread_rows
from app.inference.core.linear_algebra import compare_widths, invert, symmetric, whiten
from app.inference.core.model import Array64
from app.inference.core.priors import Prior
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade, Pseudocoreset, judge
from app.inference.fitting.fit import fit_points
from app.inference.methods.surrogate.excess import simulate_residuals
from app.inference.methods.surrogate.information import Frame, compute_squared_lengths, find_least_parts, make_frame
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.schedule import Regime
from app.inference.methods.surrogate.state import Result, Search
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.location_scale import UnknownScale
from app.inference.post.diagnostics import round_by_parameter, round_stated
from app.inference.post.doubt import state_doubt

_AXES = 4
"""Axes of largest doubt along which the mode may be far."""


def fit_final_points(rng: np.random.Generator, search: Search) -> Result:
    """Fit the requested number of points to the belief.

    Their posterior has the mode ``search.theta`` and the information ``search.information``. The histogram of residuals
    was asked at an earlier parameter. A check compares it with targets that follow the model at the mode.
    """
    setup, shown = search.setup, search.residuals
    points = fit_points(
        setup.model,
        setup.design,
        setup.prior,
        search.theta,
        search.information,
        setup.size,
        rng,
        within_bounds=setup.within_bounds,
        total=search.counted,
    )
    if shown is not None and not setup.schedule.redescending:
        expected = simulate_residuals(rng, search.rows, shown.theta, search.theta)
        search = replace(search, residuals=replace(shown, simulated=expected))
    return Result(search, points)


def release(result: Result) -> Pseudocoreset:
    """Make the release: points, the error of their posterior's mean, and grade and reasons of reliability."""
    setup, points, doubt = result.search.setup, result.points, assess(result.search)
    reliability = judge(_find_reasons(result, doubt))
    diagnostics = _diagnose(result, doubt, trusted=reliability.is_calibrated)
    y, stated = setup.design.decode_targets(points.y), state_doubt(doubt.covariance)
    return Pseudocoreset(
        points.u, y, points.weight, setup.design.columns, diagnostics, doubt=stated, reliability=reliability
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Doubt:
    """The error of the mode.

    ``covariance`` is ``(D, D)``, ``nats`` the expected loss by it. ``learned`` is the KL divergence from the prior to
    the belief. ``far`` is the loss far away. ``moved`` is the part of ``nats`` by the last step.
    """

    covariance: Array64
    nats: float
    learned: float
    far: float
    moved: float


def assess(search: Search) -> _Doubt:
    """Compute the error of the mode.

    The covariance of the regression is too small, because the sizes of errors are estimates. So it has a factor, and
    grows with unexplained residuals. The last step counts as an error too, because the search may not have converged.
    Real information may be only a part of the belief's. Then an error is ``1 / part`` times as long. So is its loss
    in nats, the information times the squared error. The doubt about the number of rows makes all parts less.
    """
    theta, information, mode, prior = search.theta, search.information, search.mode, search.setup.prior
    assert mode is not None
    step, (deviations, floor) = 0 * theta if search.step is None else search.step, TUNING.vagueness
    least = max(1 - deviations * np.sqrt(2 * search.vague + (search.count_noise / search.counted) ** 2), floor)
    parts, along = find_least_parts(information, prior.precision(theta), search.answers, least)
    error, back = TUNING.doubt * max(1.0, mode.surprise) * along @ mode.covariance @ along.T, invert(along)
    # Along an axis without information, a mode far away is no loss, so its part is the usual one there.
    last, usual = np.outer(step, step), np.maximum(parts, least)
    covariance, near = (symmetric(back @ (error / np.outer(p, p)) @ back.T) + last for p in (parts, usual))
    learned = compare_widths(invert(prior.precision(theta)) @ information)
    learned += 0.5 * float((theta - prior.mean) @ information @ (theta - prior.mean))
    moved = 0.5 * float(step @ information @ step)
    nats = 0.5 * float(np.sum(error.diagonal() / parts)) + moved
    far = compute_far_loss(search.rows, make_frame(search.rows, theta, information, prior), theta, prior, near)
    return _Doubt(covariance, nats, learned, far, moved)


def compute_far_loss(rows: Rows, frame: Frame, theta: Array64, prior: Prior, covariance: Array64) -> float:
    """Compute the loss in nats if the mode is far from ``theta``.

    There, along an axis of large doubt or by a noise scale, information may be more. Infinite without a finite doubt.
    """
    doubt, width = symmetric(frame.back.T @ covariance @ frame.back), rows.model.predictors * rows.draws.shape[1]
    if not np.all(np.isfinite(doubt)):
        return np.inf
    (values, axes), losses = np.linalg.eigh(doubt), [0.0]
    scales = covariance[:, width:] / np.sqrt(np.maximum(covariance.diagonal()[width:], 1e-300))
    for deviation in [*(axes * np.sqrt(np.maximum(values, 0))).T[-_AXES:], *(frame.back.T @ scales).T]:
        away = TUNING.far[0] * deviation
        error = doubt + np.outer(away, away) - np.outer(deviation, deviation)
        for end in (theta - frame.forth.T @ away, theta + frame.forth.T @ away):
            ratio = whiten(rows.information(end) + prior.precision(end), frame.own)
            losses.append(compare_widths(ratio) + 0.5 * float(np.sum(ratio * error)))
    return float(np.max(np.nan_to_num(losses, nan=np.inf)))


def is_scale_cut(search: Search, covariance: Array64) -> bool:
    """Whether bounds removed much from the scores of an unknown noise scale that redescend.

    Far residuals that the model does not predict have long scores of the scale. Bounds leave a part of them, and the
    histogram shows the rest. It is much if it moves the scale by two of its stated deviations.
    """
    model, score, shown = search.setup.model, search.scores[-1], search.residuals
    bound, theta = score.bound, score.theta
    assert isinstance(model, UnknownScale)
    assert bound is not None
    assert shown is not None
    middle = search.rows.draws @ theta[: search.rows.draws.shape[1]]

    def lose(distances: Array64) -> Array64:
        folded = [search.rows.fold(middle + model.scale(theta) * each) for each in distances]
        return np.array([np.mean(model.scores(each, theta)[:, -1] - bound(each)[:, -1]) for each in folded])

    moved = shown.find_clear_excess(lose) / search.information[-1, -1]
    return bool(moved**2 > 4 * covariance[-1, -1])


def find_largest_leverage(search: Search) -> float:
    """Find the largest leverage of a row that the declarations of terms allow.

    A leverage is the squared length of a row's information factors where the belief's information is the identity. A
    row of leverage 1 has as much information along an axis as the belief. Plain columns are at their means. It is 0
    without terms, and if the information of a row depends on the parameter.
    """
    rows, design = search.rows, search.setup.design
    of_terms = np.array([column.term is not None for encoder in design.encoders for column in encoder.columns])
    if not (rows.has_constant_curvature and of_terms.any()):
        return 0.0
    spread, means = spread_rows(design), rows.draws.mean(axis=0)[:-1]
    possible = np.column_stack([np.where(of_terms, spread, means), np.ones(len(spread))])
    factors = replace(rows, draws=possible).factors(search.theta)
    return float(compute_squared_lengths(factors, search.information).max())


def _find_reasons(result: Result, doubt: _Doubt) -> Iterator[tuple[Reason, Grade]]:
    """Yield each reason against full reliability, with the best grade that it allows."""
    search, points, rows = result.search, result.points, result.search.rows
    schedule, mode, residuals, fit = search.setup.schedule, search.mode, search.residuals, TUNING.most_fit
    assert mode is not None
    # Rows without a target have the variance that the model states, or the model does not describe them.
    law = rows.count * invert(rows.information(search.theta)).diagonal() if rows.uniform else np.inf
    scattered = np.max(np.var(rows.draws, axis=0) / law) > TUNING.most_surprise
    # A count at its least value may be any smaller one.
    fewest = max(np.multiply(TUNING.least_count, (search.count_noise, search.setup.places)))
    figures = [points.kl, doubt.nats, doubt.learned, mode.surprise]
    # Scores that redescend also depend on how many residuals are far.
    wide = residuals is not None and (residuals.are_wide or (schedule.redescending and residuals.are_far))
    wide = wide or (schedule.redescending and schedule.squares and is_scale_cut(search, doubt.covariance))
    # A heavy-tailed prior hardly pulls from afar, so noise may have moved the mode there.
    prior, centre = search.setup.prior, search.setup.prior.mean
    pull = np.min(prior.precision(search.theta).diagonal() / prior.precision(centre).diagonal())
    hidden = schedule.regime in {Regime.COLUMNS, Regime.CROWDED} and is_dependent(search.setup.design)
    conditions = [
        (np.isfinite(figures).all(), reasons.NOT_FINITE, Grade.NOT_USABLE),
        (state_doubt(doubt.covariance) is not None, reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY),
        (doubt.nats <= TUNING.most_noise * max(doubt.learned, 1.0), reasons.NOISE_DOMINATES, Grade.NOT_USABLE),
        (doubt.far <= max(TUNING.far[1], TUNING.far[2] * doubt.nats), reasons.NOISE_NOT_KNOWN, Grade.NOT_USABLE),
        (pull > TUNING.least_pull, reasons.NOISE_NOT_KNOWN, Grade.NOT_USABLE),
        (mode.surprise <= TUNING.most_surprise, reasons.UNEXPLAINED_ANSWERS, Grade.CENTRE_ONLY),
        (mode.reached and doubt.moved <= TUNING.most_moved * doubt.nats, reasons.NOT_CONVERGED, Grade.CENTRE_ONLY),
        (search.counted > fewest, reasons.FEW_ROWS, Grade.NOT_USABLE),
        (points.kl <= max(fit[0], fit[1] * doubt.nats), reasons.POINTS_DIFFER, Grade.CENTRE_ONLY),
        (not scattered, reasons.MISFIT, Grade.CENTRE_ONLY),
        (not wide, reasons.WIDE_RESIDUALS, Grade.CENTRE_ONLY),
        (find_largest_leverage(search) <= TUNING.most_leverage, reasons.HIDDEN_ROWS, Grade.CENTRE_ONLY),
        (not hidden, reasons.DEPENDENT_COLUMNS, Grade.CENTRE_ONLY),
    ]
    return ((reason, grade) for holds, reason, grade in conditions if not holds)


def _diagnose(result: Result, doubt: _Doubt, *, trusted: bool) -> dict[str, Any]:
    """Make the diagnostics of the release, by their public names."""
    search, points = result.search, result.points
    setup, mode, total = search.setup, search.mode, float(points.weight.sum())
    assert mode is not None
    moved = np.sqrt(np.maximum(doubt.covariance.diagonal(), 0) / invert(search.information).diagonal())
    return {
        "trusted": trusted,
        "fit_kl": round_stated(points.kl),
        "noise_kl": round_stated(doubt.nats),
        "mean_square_residual": round_stated(mode.surprise),
        "noise_in_posterior_sds": round_by_parameter(setup.model, setup.design, moved),
        "represents_every_direction": setup.size >= setup.model.smallest_exact,
        "knows_correlations": setup.schedule.asks_matrices,
        "estimated_units" if setup.rows_per_unit == 1 else "estimated_rows": round_stated(search.counted),
        "effective_size": round_stated(total**2 / max(float(np.square(points.weight).sum()), 1e-300)),
        "total_weight": round_stated(total),
        "rounds": setup.schedule.rounds,
    }
