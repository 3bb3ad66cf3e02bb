"""The first queries of a surrogate: how long rows are, then means, squares and tails; a first belief follows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from app.inference.core.query import Oracle
from app.inference.methods.surrogate.asking import features, lengths, means, moments, tails
from app.inference.methods.surrogate.first_bearing import first_bearing
from app.inference.methods.surrogate.flags import flags
from app.inference.methods.surrogate.memory import begun
from app.inference.methods.surrogate.mending import asked
from app.inference.methods.surrogate.moments import Moments, centre_of
from app.inference.methods.surrogate.population import (
    Lengths,
    Population,
    clip_of,
    mean_power,
    root_mean_square,
    scale_of,
)
from app.inference.methods.surrogate.population_information import information_of_population
from app.inference.methods.surrogate.state import Setup, State
from app.inference.methods.surrogate.winsorised import Winsorised
from app.inference.private_zone.queries import LengthHistogram

_OF_NORMAL = 3.0
"""The mean fourth power of a normal coordinate over the square of its variance."""


def opened(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    """The state after the next of the first queries."""
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
    schedule, query = state.setup.schedule, means(state.setup, state.scale, state.clip)
    answer = asked(oracle, query, schedule, schedule.means_share, query.clip)
    noise = schedule.noise_of(schedule.means_share, query.clip)
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


def _histogram(state: State, oracle: Oracle, query: LengthHistogram) -> Lengths:
    schedule = state.setup.schedule
    counts = asked(oracle, query, schedule, schedule.lengths_share, 1.0)
    return Lengths(counts, query.largest, schedule.noise_of(schedule.lengths_share, 1.0))


def _with_moments(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    setup, schedule = state.setup, state.setup.schedule
    query = moments(setup, state.scale, state.clip, state.centre)
    answer = asked(oracle, query, schedule, schedule.moments_share, state.clip)
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
    query = tails(state.setup, population.mean[:-1], np.sqrt(variance))
    answer = asked(oracle, query, schedule, schedule.tails_share, query.clip)
    noise = schedule.noise_of(schedule.tails_share, query.clip)
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
    unseen = said.unseen & setup.schedule.hides_levels
    population = replace(population, hiding=said.unseen, unseen=unseen)
    return replace(state, population=population.with_tails(said.tails(rng)))


def nothing_known(setup: Setup) -> Population:
    """Before any answer."""
    width = setup.design.width
    return Population(float(setup.schedule.slots), np.zeros(width), np.eye(width))
