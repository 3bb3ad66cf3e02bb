"""A round: an information matrix and a score at the current parameter, then a step to the next one.

One function for each kind of query: it designs the query by the belief, asks it, and updates the belief. All take the
number of the round, from 0.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.inference.core.linear_algebra import invert, raise_to, symmetric
from app.inference.core.model import Array32, Array64
from app.inference.core.query import Oracle
from app.inference.methods.surrogate.excess import (
    Excess,
    ResidualCounts,
    choose_cut,
    combine,
    compute_excess_bound,
    compute_square_weight,
    simulate_residuals,
)
from app.inference.methods.surrogate.information import correct, design_matrix, make_frame, predict_change
from app.inference.methods.surrogate.openings import ask
from app.inference.methods.surrogate.regression import Mode, Score, compute_longest_step, find_mode
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.scores import design_score, make_query, respond
from app.inference.methods.surrogate.state import Search
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.residuals import require_residuals
from app.inference.private_zone.queries import ExcessSum, InformationSum, ResidualHistogram


def ask_matrix(_rng: np.random.Generator, search: Search, oracle: Oracle, turn: int) -> Search:
    """Ask the information matrix at the current parameter, and correct the belief."""
    setup, schedule, rows = search.setup, search.setup.schedule, search.rows
    frame = make_frame(rows, search.theta, search.information, setup.prior)
    share = schedule.information_share
    design = design_matrix(rows, frame, schedule.noise_of(share, 1.0), schedule.rounds)
    query = InformationSum(search.theta, invert(frame.back @ design.root), design.bound)
    answer, noise = ask(oracle, query, schedule, share, design.bound)
    information, after = correct(frame, design, answer, noise, search.vague)
    information = raise_to(information, setup.prior.precision(search.theta))
    answers = search.answers.add(frame, design, answer, noise)
    search = replace(search, information=information, vague=after, answers=answers)
    at_start = turn == 0 and rows.one_predictor
    return _recolour(search) if at_start or rows.has_constant_curvature else search


def _recolour(search: Search) -> Search:
    """Move the draws to the second moments of the information.

    All rows have the same curvature v: at the start, or in a linear model. So the coefficients' information is v times
    the second moments of the rows: their number, means and covariance.
    """
    rows, prior, theta = search.rows, search.setup.prior, search.theta
    width = rows.draws.shape[1]
    flat = rows.information(theta)[width - 1, width - 1] / rows.count
    second = (search.information - prior.precision(theta))[:width, :width] / flat
    level = max(float(second[-1, -1]), TUNING.least_count[1] * rows.count)
    mean = second[:-1, -1] / level
    covariance = symmetric(second[:-1, :-1] / level - np.outer(mean, mean))
    return replace(search, rows=rows.with_moments(level, mean, covariance))


def ask_score(rng: np.random.Generator, search: Search, oracle: Oracle, turn: int) -> Search:
    """Ask the score at the current parameter, and step towards the mode."""
    setup, schedule, rows, theta = search.setup, search.setup.schedule, search.rows, search.theta
    if rows.uniform and search.mode is not None:  # rows are as far from theta as the mode may be
        rows = rows.around(theta, search.mode.covariance)
    frame = make_frame(rows, theta, search.information, setup.prior)
    cut, doubts = search.cut, None
    if cut is not None and schedule.redescending:
        doubts = _doubt_predictors(search)
        deviations = doubts * require_residuals(setup.model).largest_residual(theta) / 2
        cut = max(1.0, TUNING.widening * float(np.sqrt(np.mean(deviations**2))))
    response = respond(rng, rows, theta, frame, labels=setup.labels, cut=cut, doubts=doubts)
    sigma = schedule.effective_sigma / np.sqrt(schedule.score_shares.sum())
    design = design_score(rows, frame, response, sigma=sigma)
    share = float(schedule.score_shares[turn])
    query = make_query(theta, invert(design.factor), design.clip, cut)
    answer, deviation = ask(oracle, query, schedule, share, design.clip)
    noise = deviation**2 * design.factor @ design.factor.T
    noise += (1 / schedule.rate - 1) * rows.information(theta, design.root**2)

    def apply_bound(folded: Array32) -> Array64:
        return query.bound_rows(rows.model, folded).astype(np.float64) @ design.factor.T

    gradient, noise = design.factor @ answer, symmetric(noise)
    score = Score(theta, gradient, noise, design.kept, design.root, apply_bound, cut)
    scores = (*search.scores, score)
    mode = find_mode(search.rows, frame, theta, setup.prior, scores, excess=search.excess, vague=search.vague)
    return _move(replace(search, scores=scores, mode=mode), mode, last=turn == schedule.rounds - 1)


def _doubt_predictors(search: Search) -> Array64:
    """Compute standard deviations ``(M,)`` of the draws' linear predictors.

    They come from the doubt about the mode, or at first from the prior. A predictor within the declared bounds, -1 and
    1, has a deviation of about a half.
    """
    draws, prior = search.rows.draws, search.setup.prior
    doubt = invert(prior.precision(search.theta)) if search.mode is None else search.mode.covariance
    variance = np.vecdot(draws @ doubt[: draws.shape[1], : draws.shape[1]], draws)
    return np.asarray(np.sqrt(np.clip(variance, 0, 0.25)))


def _move(search: Search, mode: Mode, *, last: bool) -> Search:
    """Step to the mode, and predict the information there.

    A step is limited, by a trust region in linear predictors: their root mean square change, and the change of rows far
    out. The last step has only the limits of :func:`find_mode`, because no query follows it.
    """
    setup, rows, theta = search.setup, search.rows, search.theta
    step = mode.mean - theta
    change = rows.change(step)
    if not last:
        furthest = max(TUNING.furthest_step, TUNING.step_of_predictors * float(np.quantile(rows.change(theta), 0.998)))
        share = min(
            1.0,
            compute_longest_step(rows, theta) / max(float(np.sqrt(np.mean(change**2))), 1e-12),
            furthest / max(float(np.quantile(change, 0.998)), 1e-12),
        )
        step, change = share * step, share * change
    there = theta + step
    to_there = predict_change(rows, theta, there, setup.prior)
    information = raise_to(to_there @ search.information @ to_there.T, setup.prior.precision(there))
    answers = search.answers.move(to_there)
    vague = search.vague + float(np.mean((change / np.sqrt(len(theta))) ** 2))
    return replace(search, theta=there, information=information, answers=answers, vague=vague, step=there - theta)


def ask_residuals(rng: np.random.Generator, search: Search, oracle: Oracle, _turn: int) -> Search:
    """Ask a histogram of residuals, and choose the cut of all further scores.

    For scores that redescend, the histogram is only a check.
    """
    schedule, model = search.setup.schedule, search.setup.model
    share, query = schedule.residuals_share, ResidualHistogram(search.theta)
    counts, noise = ask(oracle, query, schedule, share, 1.0)
    simulated = simulate_residuals(rng, search.rows, search.theta, search.theta)
    largest = require_residuals(model).largest_residual(search.theta)
    residuals = ResidualCounts(search.theta, counts.reshape(2, -1), noise, largest, simulated, search.rows.count)
    if schedule.redescending:
        deviations = np.resize(_doubt_predictors(search) * largest / 2, len(simulated))
        simulated = simulated + deviations * rng.standard_normal(len(simulated))
        return replace(search, residuals=replace(residuals, simulated=simulated))
    sigma = schedule.effective_sigma / np.sqrt(schedule.score_shares[schedule.residuals_turn :].sum())
    asked = schedule.effective_sigma / np.sqrt(len(schedule.excess_turns) * TUNING.excess_share)
    cut = choose_cut(residuals, size=model.dimension, sigma=sigma, asked=asked, squares=schedule.squares)
    assert search.cut is not None
    if cut == search.cut:
        return replace(search, residuals=residuals)
    early = combine(_make_excess_query(search, residuals, search.cut), (), 1.0, residuals)
    return replace(search, residuals=residuals, cut=cut, scores=restore(search.rows, search.scores, early))


def restore(rows: Rows, scores: Sequence[Score], early: Excess) -> tuple[Score, ...]:
    """Add the excess beyond the first cut to its scores, and its error.

    The scores share the error. An average of them would lower it, so it counts once for each of them.
    """
    added = [early.gradient(rows, score.kept) for score in scores]
    return tuple(
        replace(score, gradient=score.gradient + gradient, noise=score.noise + len(scores) * error)
        for score, (gradient, error) in zip(scores, added, strict=True)
    )


def ask_excess(_rng: np.random.Generator, search: Search, oracle: Oracle, _turn: int) -> Search:
    """Ask the sum of the excess beyond the cut, and update its estimate.

    The first such query chooses units and clipping norm; later ones keep them, so that answers can be averaged.
    """
    schedule, theta = search.setup.schedule, search.theta
    residuals, cut = search.residuals, search.cut
    assert residuals is not None
    assert cut is not None
    if search.excess is not None:
        query = replace(search.excess.query, theta=theta)
    else:
        query = _make_excess_query(search, residuals, cut)
    answer, noise = ask(oracle, query, schedule, TUNING.excess_share, query.clip)
    answers = (*(() if search.excess is None else search.excess.answers), answer)
    return replace(search, excess=combine(query, answers, noise, residuals))


def _make_excess_query(search: Search, residuals: ResidualCounts, cut: float) -> ExcessSum:
    """Make the query of the excess beyond ``cut`` at the current parameter."""
    rows, theta, squares = search.rows, search.theta, search.setup.schedule.squares
    scale = require_residuals(rows.model).residuals(rows.fold(None), theta).scale.astype(np.float64)
    predictor = rows.draws @ theta[: rows.draws.shape[1]]
    return ExcessSum(
        theta,
        cut,
        scale=float(np.sqrt(np.mean(scale**2))),
        centre=float(predictor.mean()),
        spread=max(2 * float(predictor.std()), 1e-6),
        squares=compute_square_weight(residuals, cut) if squares else 0.0,
        clip=compute_excess_bound(residuals, cut, squares=squares),
    )
