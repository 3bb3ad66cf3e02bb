"""The first queries: lengths of rows, means, squares and tails of columns; then the belief about rows.

Each histogram of lengths sets the clipping norm of the sum after it. The mean of a column in wide bounds is often large
compared with its deviation. Then the noise in its squares hides its variance. So means are asked for first, and squares
are around them.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array64
from app.inference.core.query import Oracle, Query
from app.inference.methods.surrogate.column_laws import Columns, compute_winsorised_means, draw_columns
from app.inference.methods.surrogate.information import Answers, make_frame
from app.inference.methods.surrogate.moments import (
    Lengths,
    Moments,
    choose_centre,
    choose_clip,
    choose_scale,
    round_to_grid,
)
from app.inference.methods.surrogate.regression import Score, find_mode
from app.inference.methods.surrogate.rows import Rows, colour, draw_noise
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.state import Opening, Search, Setup
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.models.location_scale import UnknownScale
from app.inference.private_zone.queries import LengthHistogram, MeanSum, MomentSum, TailSum
from app.inference.private_zone.queries.tails import LEAST_DEVIATION, MOST_DEVIATION

_MOST_DEVIATIONS = 50.0
"""Deviations of noise at which an answer is cut, so that all states stay finite."""
_OF_NORMAL_ROWS = 0.66
"""Clipping norm of the sum of tails, over the root of the number of columns: twice a normal row's root mean square."""
_KURTOSIS = 3.0
"""Fourth moment of a normal column, over its squared variance."""
_UNIFORM = 1 / 3
"""Variance of a column's mean within the declared bounds -1 and 1, before any answer."""


def ask(oracle: Oracle, query: Query, schedule: Schedule, share: float, most: float) -> tuple[Array64, float]:
    """Ask ``query``; return a finite sum over all slots, and its noise.

    The sum has the shape of the answer. The noise is a standard deviation, the same for every entry.

    Args:
        oracle: answers queries with noise.
        query: the query.
        schedule: of the run.
        share: of the query in the budget.
        most: the clipping norm: a unit adds at most this to each value.
    """
    bound = most * (schedule.slots + _MOST_DEVIATIONS * schedule.multiplier(share))
    answer = np.nan_to_num(oracle.ask(query), nan=0.0, posinf=bound, neginf=-bound)
    return np.asarray(np.clip(answer, -bound, bound) / schedule.rate), schedule.noise_of(share, most)


def make_lengths_query(opening: Opening) -> LengthHistogram:
    """Make the next histogram of lengths.

    The first is of rows. The second is of rows around their means, or of the contributions to the sum of moments if
    means are not asked for.
    """
    setup, design = opening.setup, opening.setup.design
    squares = opening.done > 0 and not setup.schedule.means_share
    most = (2.0 if np.ndim(opening.centre) else 1.0) ** 2 * setup.features
    if squares:
        most = 4.0 * (setup.features + 1) * setup.rows_per_unit**2
    scale = opening.scale if squares else 1.0
    return LengthHistogram(
        scale, design.width, intercept=design.intercept, largest=most, squares=squares, centre=opening.centre
    )


def make_moments_query(opening: Opening, kind: type[MomentSum]) -> MomentSum:
    """Make the query for means, or for means and squares."""
    width, intercept = opening.setup.design.width, opening.setup.design.intercept
    clip, weight = opening.clip, opening.weight
    return kind(opening.scale, width, intercept=intercept, clip=clip, weight=weight, centre=opening.centre)


def make_tails_query(setup: Setup, mean: Array64, deviation: Array64) -> TailSum:
    """Make the query for tails of columns; their ``mean`` and ``deviation`` are ``(k,)``."""
    clip = float(max(_OF_NORMAL_ROWS * np.sqrt(setup.features), 1.5))
    within = np.clip(deviation, LEAST_DEVIATION, MOST_DEVIATION)
    return TailSum(1.0, setup.design.width, intercept=True, deviation=within, clip=clip, centre=round_to_grid(mean))


def open_next(rng: np.random.Generator, opening: Opening, oracle: Oracle) -> Opening | Search:
    """Ask the next of the first queries; after the last one, begin the rounds."""
    schedule = opening.setup.schedule
    before = 3 if schedule.means_share else 2
    if opening.done < before:
        steps = (_ask_lengths, _ask_means, _ask_spread) if schedule.means_share else (_ask_lengths, _ask_squares)
        return replace(steps[opening.done](opening, oracle), done=opening.done + 1)
    if opening.done == before:
        asked = replace(_ask_moments(opening, oracle), done=opening.done + 1)
        return asked if schedule.tails_share else begin(rng, asked, None, None)
    return _ask_tails(rng, opening, oracle)


def _ask_histogram(opening: Opening, oracle: Oracle) -> Lengths:
    schedule, query = opening.setup.schedule, make_lengths_query(opening)
    counts, noise = ask(oracle, query, schedule, schedule.lengths_share, 1.0)
    return Lengths(counts, query.largest, noise)


def _ask_lengths(opening: Opening, oracle: Oracle) -> Opening:
    """Ask the first histogram; the units of columns and the clipping norm are for a sum of means."""
    length = _ask_histogram(opening, oracle).root_mean_square
    scale = choose_scale(length, opening.setup.features)
    return replace(opening, scale=scale, clip=choose_clip(np.hypot(1.0, length / scale)))


def _ask_means(opening: Opening, oracle: Oracle) -> Opening:
    schedule, query = opening.setup.schedule, make_moments_query(opening, MeanSum)
    answer, noise = ask(oracle, query, schedule, schedule.means_share, query.clip)
    return replace(opening, centre=choose_centre(answer, opening.scale, noise, query.weight))


def _ask_spread(opening: Opening, oracle: Oracle) -> Opening:
    """Ask the lengths of rows around their means, for the sum of moments.

    The clipping norm is about twice the root mean square of ``(1, z, z * z)``. Fourth moments of columns follow from
    the fourth power of lengths, as for normal columns.
    """
    lengths = _ask_histogram(opening, oracle)
    count, second, fourth = opening.setup.features, lengths.mean_power(1), lengths.mean_power(2)
    scale = choose_scale(np.sqrt(second), count)
    squares = _KURTOSIS * fourth / ((count + 2) * scale**4)
    return replace(opening, scale=scale, clip=choose_clip(np.sqrt(1 + second / scale**2 + squares)))


def _ask_squares(opening: Opening, oracle: Oracle) -> Opening:
    """Ask the lengths of contributions to the sum of moments.

    They show its clipping norm, and the number of units with rows.
    """
    lengths = _ask_histogram(opening, oracle)
    # A unit's contribution begins with its number of rows, so it is at least 1 long.
    units = np.clip(lengths.counts[: 1 + int(np.log2(lengths.largest))].sum(), 1, opening.setup.schedule.slots)
    return replace(opening, clip=choose_clip(lengths.root_mean_square), units=float(units))


def _ask_moments(opening: Opening, oracle: Oracle) -> Opening:
    setup, schedule = opening.setup, opening.setup.schedule
    query = make_moments_query(opening, MomentSum)
    answer, noise = ask(oracle, query, schedule, TUNING.moments_share, query.clip)
    moments = Moments(answer, opening.scale, noise, setup.declared, opening.centre, query.weight, query.clip)
    population = moments.estimate(setup.places)
    return replace(opening, moments=moments, population=population)


def _ask_tails(rng: np.random.Generator, opening: Opening, oracle: Oracle) -> Search:
    setup, schedule, population = opening.setup, opening.setup.schedule, opening.population
    assert population is not None
    query = make_tails_query(setup, population.mean, np.sqrt(population.covariance.diagonal()))
    answer, noise = ask(oracle, query, schedule, schedule.tails_share, query.clip)
    tails, errors = (compute_winsorised_means(each, population.count) for each in (answer, np.full((3, 1), noise)))
    return begin(rng, opening, tails, errors[:, 0])


def begin(rng: np.random.Generator, opening: Opening, tails: Array64 | None, noise: Array64 | None) -> Search:
    """Begin the rounds, with a belief about rows from the first answers.

    The first parameter is the prior's mean with slopes of zero. So all rows have the same curvature there. It is
    limited: where labels are nearly certain, rows have hardly any information.

    Args:
        rng: for the draws.
        opening: after its last query.
        tails: winsorised means ``(3, k)``; None: they were not asked for.
        noise: their standard deviations ``(3,)``, or None.
    """
    setup, population, moments, design = opening.setup, opening.population, opening.moments, opening.setup.design
    assert population is not None
    assert moments is not None
    mean, covariance = population.mean, population.covariance
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 1e-30))
    columns = Columns(mean, deviation, population.error, design.lower, design.upper, setup.declared.group, tails, noise)
    standard = draw_columns(rng, columns, max(TUNING.draws, 4 * design.width))
    draws = colour(standard, mean, covariance, intercept=design.intercept)
    residuals = draw_noise(rng, setup.model, len(draws)) if isinstance(setup.model, UnknownScale) else None
    uniform = design.target is None
    per_unit = float(np.clip(population.count / opening.units, 1, setup.rows_per_unit))
    rows = Rows(setup.model, population.count, standard, draws, design.intercept, per_unit, uniform, residuals)
    theta, cut = setup.prior.mean.copy(), TUNING.first_cut if setup.schedule.cuts_residuals else None
    if design.intercept:
        theta[: setup.model.predictors * design.width].reshape(-1, design.width)[:, :-1] = 0
        theta = np.clip(theta, -TUNING.furthest_start, TUNING.furthest_start)
    information = rows.information(theta) + setup.prior.precision(theta)
    answers = Answers(0, 0 * information, 0 * information)
    done, noise_of_count = setup.schedule.openings, moments.count_noise
    begun = Search(setup, done, rows, theta, information, answers, rows.count, noise_of_count, cut=cut)
    return _begin_at_means(begun, moments) if rows.uniform else begun


def _begin_at_means(search: Search, moments: Moments) -> Search:
    """Begin at the means of columns, for a model of rows without a target.

    The sum of scores is zero there. A column's mean may be anywhere within its bounds. The variances of columns are
    the model's, unless answers differ by more than two deviations of noise. The information follows from the number of
    rows, so there is no doubt about its entries.
    """
    rows, prior, start = search.rows, search.setup.prior, search.theta
    (means, _), all_rows = moments.means(rows.count), rows.information(start)
    law = rows.count * invert(all_rows)
    unusual = np.var(rows.draws, axis=0) - law.diagonal()
    error = np.hypot(moments.scale, 2 * (means - moments.centre)) * moments.scale * moments.noise / rows.count
    clear = max(0.0, 1 - 4 * float(np.sum(error**2) / max(np.sum(unusual**2), 1e-300)))
    spread = law + clear * np.diag(unusual)
    variance = np.square(moments.noise * moments.scale / rows.count)
    gain = 1 / (1 + variance / _UNIFORM)
    noise = gain * variance * all_rows @ all_rows + (1 / search.setup.schedule.rate - 1) * all_rows
    score = Score(gain * means, np.zeros(len(means)), noise, np.ones(1))
    mode = find_mode(rows, make_frame(rows, start, search.information, prior), start, prior, (score,))
    theta = np.clip(mode.mean, -1, 1)
    rows = rows.with_moments(rows.count, theta, spread)
    return replace(search, rows=rows, theta=theta, vague=0.0, scores=(score,), mode=mode)
