"""The first questions of a surrogate: how long rows are, then means, squares and tails; a first belief follows.

Columns in wide bounds often lie far from zero for how much they vary, and then the noise in their squares hides their
variance. So means are asked first, squares around them, and the scale is that of what is left.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.protocol import Array32, Array64, Oracle
from app.inference.questions import InformationMomentSum, LengthHistogram, MeanSum, MomentSum, TailSum
from app.inference.questions.tails import LEAST_DEVIATION, MOST_DEVIATION
from app.inference.surrogate.first_bearing import first_bearing
from app.inference.surrogate.flags import flags
from app.inference.surrogate.guard import asked
from app.inference.surrogate.memory import begun
from app.inference.surrogate.moments import Moments, centre_of, on_grid
from app.inference.surrogate.population import Lengths, Population, clip_of, mean_power, root_mean_square, scale_of
from app.inference.surrogate.state import Setup, State
from app.inference.surrogate.winsorised import Winsorised, clip_of_tails

_MOST_OF_MOMENTS = 4.0
_ROWS = 512
_OF_NORMAL = 3.0
"""The mean fourth power of a normal coordinate over the square of its variance."""


def features(setup: Setup) -> int:
    """Design columns but for the intercept."""
    return setup.design.width - int(setup.design.intercept)


def lengths(setup: Setup, scale: float, *, squares: bool = False, centre: Array64 | float = 0.0) -> LengthHistogram:
    """Of units, or with ``squares`` of what the moments sum; a row's bounded coordinates bound the first."""
    most = (2.0 if np.ndim(centre) else 1.0) ** 2 * features(setup)
    if squares:
        most = _MOST_OF_MOMENTS * (features(setup) + 1) * setup.rows_per_unit**2
    width, intercept = setup.design.width, setup.design.intercept
    return LengthHistogram(scale, width, intercept=intercept, largest=most, squares=squares, centre=centre)


def means(setup: Setup, scale: float, clip: float) -> MeanSum:
    """The question for means alone."""
    return MeanSum(scale, setup.design.width, intercept=setup.design.intercept, clip=clip)


def moments(setup: Setup, scale: float, clip: float, centre: Array64 | float = 0.0) -> MomentSum:
    """The question for means and squares."""
    return MomentSum(scale, setup.design.width, intercept=setup.design.intercept, clip=clip, centre=centre)


def columns(setup: Setup, scale: float, theta: Array64, clip: float) -> InformationMomentSum:
    """The question for the information of single columns at ``theta``."""
    return InformationMomentSum(scale, setup.design.width, intercept=setup.design.intercept, theta=theta, clip=clip)


def tails(setup: Setup, centre: Array64, deviation: Array64) -> TailSum:
    """The question for columns' tails."""
    clip, within = clip_of_tails(features(setup)), np.clip(deviation, LEAST_DEVIATION, MOST_DEVIATION)
    return TailSum(1.0, setup.design.width, intercept=True, deviation=within, clip=clip, centre=on_grid(centre))


def opened(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    """The state after the next of the first questions."""
    way = _CENTRED if state.setup.schedule.means_share else _PLAIN
    if state.done < len(way):
        return way[state.done](state, oracle)
    follows = _with_moments if state.done == len(way) else _with_tails
    return follows(rng, state, oracle)


def _with_lengths(state: State, oracle: Oracle) -> State:
    found = _histogram(state, oracle, lengths(state.setup, state.scale))
    length = root_mean_square(found)
    scale = scale_of(length, features(state.setup))
    return replace(state, scale=scale, clip=clip_of(np.hypot(1.0, length / scale)), lengths=found)


def _with_means(state: State, oracle: Oracle) -> State:
    schedule, question = state.setup.schedule, means(state.setup, state.scale, state.clip)
    answer = asked(oracle, question, schedule, schedule.means_share, question.clip)
    noise = schedule.noise_of(schedule.means_share, question.clip)
    return replace(state, centre=centre_of(answer, state.scale, noise))


def _with_spread(state: State, oracle: Oracle) -> State:
    found = _histogram(state, oracle, lengths(state.setup, 1.0, centre=state.centre))
    count, second, fourth = features(state.setup), mean_power(found, 1), mean_power(found, 2)
    scale = scale_of(np.sqrt(second), count)
    squares = _OF_NORMAL * fourth / ((count + 2) * scale**4)
    return replace(state, scale=scale, clip=clip_of(np.sqrt(1 + second / scale**2 + squares)), lengths=found)


def _with_squares(state: State, oracle: Oracle) -> State:
    found = _histogram(state, oracle, lengths(state.setup, state.scale, squares=True))
    return replace(state, clip=clip_of(root_mean_square(found)))


_PLAIN: Final[tuple[Callable[[State, Oracle], State], ...]] = (_with_lengths, _with_squares)
_CENTRED: Final[tuple[Callable[[State, Oracle], State], ...]] = (_with_lengths, _with_means, _with_spread)


def _histogram(state: State, oracle: Oracle, question: LengthHistogram) -> Lengths:
    schedule = state.setup.schedule
    counts = asked(oracle, question, schedule, schedule.lengths_share, 1.0)
    return Lengths(counts, question.largest, schedule.noise_of(schedule.lengths_share, 1.0))


def _with_moments(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    setup, schedule = state.setup, state.setup.schedule
    question = moments(setup, state.scale, state.clip, state.centre)
    answer = asked(oracle, question, schedule, schedule.moments_share, state.clip)
    noise = schedule.noise_of(schedule.moments_share, state.clip)
    found = Moments(answer, state.scale, noise, setup.known, state.centre)
    population = found.population(setup.places, intercept=setup.design.intercept)
    population = replace(population, least=np.where(setup.known.indicators, 0.0, -1.0))
    information = information_of_population(rng, setup, population, state.theta)
    setup = replace(setup, schedule=replace(schedule, units=min(population.count, float(schedule.slots))))
    return replace(
        state,
        setup=setup,
        population=population,
        information=information,
        memory=begun(information) if schedule.averages else None,
        rows=population.count,
        moments=found,
        bearing=first_bearing(setup, population, found, state.lengths),
    )


def _with_tails(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    schedule, population = state.setup.schedule, state.population
    variance = population.covariance.diagonal()[:-1]
    question = tails(state.setup, population.mean[:-1], np.sqrt(variance))
    answer = asked(oracle, question, schedule, schedule.tails_share, question.clip)
    noise = schedule.noise_of(schedule.tails_share, question.clip)
    squares = schedule.noise_of(schedule.moments_share, state.clip) * state.scale**2
    uncertain = squares / (population.count * variance)
    said = Winsorised(answer, population.count, noise, uncertain)
    return with_tails(rng, replace(state, winsorised=said))


def with_tails(rng: np.random.Generator, state: State) -> State:
    """With the tails that were told, if they were asked for, of columns that have the moments that are believed."""
    said, population, setup = state.winsorised, state.population, state.setup
    if said is None:
        return state
    told = flags(setup.known, population.mean[:-1], population.covariance.diagonal()[:-1], said.uncertain)
    said = replace(said, flags=told)
    unseen = said.unseen & (setup.room_for_unseen and setup.schedule.hides_levels)
    population = replace(population, hiding=said.unseen, unseen=unseen)
    return replace(state, population=population.with_tails(said.tails(rng), known=setup.room))


def nothing_known(setup: Setup) -> Population:
    """Before any answer."""
    width = setup.design.width
    return Population(float(setup.schedule.slots), np.zeros(width), np.eye(width))


def information_of(setup: Setup, population: Population, rows: Array32, theta: Array64) -> Array64:
    """The population's ``(D, D)``, from its law where the model allows, else from a sample of its folded ``rows``."""
    if setup.curvature is not None:
        return setup.curvature.information(population, theta)
    each = rows if setup.design.intercept else rows[:1]  # without an intercept, rows have no part in it
    factors = setup.model.information_factors(each, theta).astype(np.float64).reshape(-1, len(theta))
    return np.asarray(population.count * (factors.T @ factors) / len(each))


def information_of_population(
    rng: np.random.Generator, setup: Setup, population: Population, theta: Array64
) -> Array64:
    """The population's ``(D, D)``, prior included; of rows drawn, where the model needs them."""
    x = population.rows(rng, max(_ROWS, 4 * setup.design.width))
    rows = setup.model.fold(x, np.zeros(len(x))).astype(np.float32)
    return information_of(setup, population, rows, theta) + setup.prior.precision(theta)
