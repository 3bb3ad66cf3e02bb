"""The first queries: how long rows are, means, squares and tails of columns; then the belief of rows.

Columns in wide bounds often lie far from zero for how much they vary. Then the noise in their squares hides their
variance. So means are asked for first, and squares around them.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.query import Oracle, Query
from app.inference.methods.one_belief.column_laws import Columns, draw_columns, winsorised_means
from app.inference.methods.one_belief.rows import Rows, colour
from app.inference.methods.one_belief.schedule import Schedule
from app.inference.methods.one_belief.state import Opening, Search, Setup
from app.inference.methods.one_belief.tuning import TUNING
from app.inference.methods.surrogate.moments import Moments, centre_of, on_grid
from app.inference.methods.surrogate.population import (
    Lengths,
    clip_of,
    mean_power,
    root_mean_square,
    scale_of,
)
from app.inference.private_zone.queries import LengthHistogram, MeanSum, MomentSum, TailSum
from app.inference.private_zone.queries.tails import LEAST_DEVIATION, MOST_DEVIATION

_MOST_DEVIATIONS = 50.0
_OF_NORMAL_ROWS = 0.66  # root mean square of a normal row's part in the sum of tails, per column, times two
_KURTOSIS = 3.0
_LEAST_SHARE = 1e-4


def ask(oracle: Oracle, query: Query, schedule: Schedule, share: float, most: float) -> Array64:
    """Ask ``query``; return the sum over all slots. A unit adds at most ``most``; noise of 50 deviations is cut."""
    bound = most * (schedule.slots + _MOST_DEVIATIONS * schedule.multiplier(share))
    answer = np.nan_to_num(oracle.ask(query), nan=0.0, posinf=bound, neginf=-bound)
    return np.asarray(np.clip(answer, -bound, bound) / schedule.rate)


def lengths_query(setup: Setup, opening: Opening) -> LengthHistogram:
    """The next histogram: of rows; then of rows around their means, or of what the moments sum."""
    width, intercept = setup.design.width, setup.design.intercept
    squares = opening.lengths is not None and not setup.schedule.means_share
    most = (2.0 if np.ndim(opening.centre) else 1.0) ** 2 * setup.features
    if squares:
        most = 4.0 * (setup.features + 1) * setup.rows_per_unit**2
    scale = opening.scale if squares else 1.0
    return LengthHistogram(scale, width, intercept=intercept, largest=most, squares=squares, centre=opening.centre)


def moments_query(opening: Opening, kind: type[MomentSum]) -> MomentSum:
    """A sum of means, or of means and squares."""
    design = opening.setup.design
    return kind(opening.scale, design.width, intercept=design.intercept, clip=opening.clip, centre=opening.centre)


def tails_query(setup: Setup, mean: Array64, deviation: Array64) -> TailSum:
    """The sum of tails of columns with these means and deviations."""
    clip = float(max(_OF_NORMAL_ROWS * np.sqrt(setup.features), 1.5))
    within = np.clip(deviation, LEAST_DEVIATION, MOST_DEVIATION)
    return TailSum(1.0, setup.design.width, intercept=True, deviation=within, clip=clip, centre=on_grid(mean))


def open_next(rng: np.random.Generator, opening: Opening, oracle: Oracle) -> Opening | Search:
    """Ask the next of the first queries."""
    schedule = opening.setup.schedule
    before = 3 if schedule.means_share else 2
    if opening.done < before:
        steps = (_ask_lengths, _ask_means, _ask_spread) if schedule.means_share else (_ask_lengths, _ask_squares)
        return replace(steps[opening.done](opening, oracle), done=opening.done + 1)
    if opening.done == before:
        found = replace(_ask_moments(opening, oracle), done=opening.done + 1)
        return found if schedule.tails_share else begin(rng, found, None, None)
    return _ask_tails(rng, opening, oracle)


def _histogram(opening: Opening, oracle: Oracle) -> Lengths:
    schedule, query = opening.setup.schedule, lengths_query(opening.setup, opening)
    counts = ask(oracle, query, schedule, schedule.lengths_share, 1.0)
    return Lengths(counts, query.largest, schedule.noise_of(schedule.lengths_share, 1.0))


def _ask_lengths(opening: Opening, oracle: Oracle) -> Opening:
    found = _histogram(opening, oracle)
    length = root_mean_square(found)
    scale = scale_of(length, opening.setup.features)
    return replace(opening, scale=scale, clip=clip_of(np.hypot(1.0, length / scale)), lengths=found)


def _ask_means(opening: Opening, oracle: Oracle) -> Opening:
    schedule, query = opening.setup.schedule, moments_query(opening, MeanSum)
    answer = ask(oracle, query, schedule, schedule.means_share, query.clip)
    noise = schedule.noise_of(schedule.means_share, query.clip)
    return replace(opening, centre=centre_of(answer, opening.scale, noise))


def _ask_spread(opening: Opening, oracle: Oracle) -> Opening:
    found = _histogram(opening, oracle)
    count, second, fourth = opening.setup.features, mean_power(found, 1), mean_power(found, 2)
    scale = scale_of(np.sqrt(second), count)
    squares = _KURTOSIS * fourth / ((count + 2) * scale**4)
    return replace(opening, scale=scale, clip=clip_of(np.sqrt(1 + second / scale**2 + squares)), lengths=found)


def _ask_squares(opening: Opening, oracle: Oracle) -> Opening:
    found = _histogram(opening, oracle)
    return replace(opening, clip=clip_of(root_mean_square(found)), lengths=found)


def _ask_moments(opening: Opening, oracle: Oracle) -> Opening:
    setup, schedule = opening.setup, opening.setup.schedule
    query = moments_query(opening, MomentSum)
    answer = ask(oracle, query, schedule, schedule.moments_share, query.clip)
    noise = schedule.noise_of(schedule.moments_share, query.clip)
    moments = Moments(answer, opening.scale, noise, setup.known, opening.centre)
    population = moments.population(setup.places, intercept=setup.design.intercept, least=TUNING.least_count)
    return replace(opening, moments=moments, population=population)


def _ask_tails(rng: np.random.Generator, opening: Opening, oracle: Oracle) -> Search:
    setup, schedule, population = opening.setup, opening.setup.schedule, opening.population
    assert population is not None
    covariance = population.covariance.diagonal()[: setup.features]
    query = tails_query(setup, population.mean[: setup.features], np.sqrt(covariance))
    answer = ask(oracle, query, schedule, schedule.tails_share, query.clip)
    noise = np.full((3, 1), schedule.noise_of(schedule.tails_share, query.clip))
    return begin(
        rng,
        opening,
        winsorised_means(answer, population.count),
        winsorised_means(noise, population.count)[:, 0],
    )


def begin(rng: np.random.Generator, opening: Opening, tails: Array64 | None, noise: Array64 | None) -> Search:
    """Begin the rounds: at zero, with the belief of rows that the first answers make."""
    setup, population, moments = opening.setup, opening.population, opening.moments
    assert population is not None
    assert moments is not None
    count = setup.features
    error = moments.noise * opening.scale**2 / population.count
    mean, covariance = population.mean[:count].copy(), population.covariance[:count, :count].copy()
    for number in np.unique(setup.known.group[setup.known.indicators]):
        members = np.flatnonzero(setup.known.group == number)
        shares = leave_reference(mean[members], error)
        mean[members], covariance[np.ix_(members, members)] = shares, np.diag(shares) - np.outer(shares, shares)
    deviation = np.sqrt(np.maximum(covariance.diagonal(), 1e-30))
    columns = Columns(
        mean,
        deviation,
        error=np.full(count, error),
        least=np.where(setup.known.indicators, 0.0, -1.0),
        group=setup.known.group,
        tails=tails,
        tails_noise=noise,
    )
    standard = draw_columns(rng, columns, max(TUNING.draws, 4 * setup.design.width))
    draws = colour(standard, mean, covariance, intercept=setup.design.intercept)
    rows = Rows(
        setup.model, population.count, standard, draws, setup.design.intercept, one_predictor=setup.one_predictor
    )
    theta, cut = np.zeros(setup.model.dimension), TUNING.first_cut if setup.schedule.unbounded else None
    information = rows.information(theta) + setup.prior.precision(theta)
    return Search(setup, setup.schedule.openings, rows, theta, information, population.count, moments.noise, cut=cut)


def leave_reference(shares: Array64, error: float) -> Array64:
    """Raise shares ``(k,)`` of levels to their ``error``, and leave as much to the level without an indicator.

    An indicator that seems constant would be known too well, and a bound in its metric would cut what is to be
    measured.
    """
    least = min(max(error, _LEAST_SHARE), 1 / (2 * (len(shares) + 1)))
    raised = np.maximum(shares, least)
    return np.asarray(raised * min(1.0, (1 - least) / float(raised.sum())))
