"""The first questions of a surrogate: how long rows are, then means and squares; a first belief follows."""

from dataclasses import replace

import numpy as np

from app.inference.protocol import Array32, Array64, Oracle
from app.inference.questions import InformationMomentSum, LengthHistogram, MomentSum
from app.inference.surrogate.bearing import Bearing
from app.inference.surrogate.guard import asked
from app.inference.surrogate.isotropy import Isotropic, Lengths, isotropic
from app.inference.surrogate.memory import begun
from app.inference.surrogate.moments import Moments
from app.inference.surrogate.population import Population, clip_of, root_mean_square, scale_of
from app.inference.surrogate.single_index import Labels
from app.inference.surrogate.state import Setup, State
from app.inference.surrogate.toward import TESTS

QUESTIONS = 3
LEAST_NOISE = 15.0
"""Nats that one score of the whole budget would lose: below, believing in isotropic rows costs more than it saves."""
LEAST_COLUMNS = 8
STEEPEST, MOST_PULLED = 3.0, 1.0
"""Nats that a prior may move slopes of that length, and be made up for; a narrower one leaves no bearing."""
_MOST_OF_MOMENTS = 4.0
_ROWS = 512


def features(setup: Setup) -> int:
    """Design columns but for the intercept."""
    return setup.design.width - int(setup.design.intercept)


def lengths(setup: Setup, scale: float, *, squares: bool) -> LengthHistogram:
    """Of units, or with ``squares`` of what the moments sum; a row's bounded coordinates bound the first."""
    most = _MOST_OF_MOMENTS * (features(setup) + 1) * setup.rows_per_unit**2 if squares else float(features(setup))
    return LengthHistogram(scale, setup.design.width, intercept=setup.design.intercept, largest=most, squares=squares)


def moments(setup: Setup, scale: float, clip: float) -> MomentSum:
    """The question for means and squares."""
    return MomentSum(scale, setup.design.width, intercept=setup.design.intercept, clip=clip)


def opened(rng: np.random.Generator, state: State, oracle: Oracle) -> State:
    """The state after the next of the first questions."""
    setup, schedule = state.setup, state.setup.schedule
    if state.done < QUESTIONS - 1:
        squares = state.done == 1
        question = lengths(setup, state.scale, squares=squares)
        counts = asked(oracle, question, schedule, schedule.lengths_share, 1.0)
        noise = schedule.multiplier(schedule.lengths_share) / schedule.rate
        length = root_mean_square(counts, question.largest, noise)
        if squares:
            return replace(state, clip=clip_of(length))
        found_lengths = Lengths(counts, question.largest, noise)
        return replace(state, scale=scale_of(length, features(setup)), lengths=found_lengths)
    answer = asked(oracle, moments(setup, state.scale, state.clip), schedule, schedule.moments_share, state.clip)
    noise = schedule.multiplier(schedule.moments_share) / schedule.rate * state.clip
    found = Moments(answer, state.scale, noise, setup.known)
    population = found.population(setup.places, intercept=setup.design.intercept)
    information = _first_information(rng, setup, population, state.theta)
    setup = replace(setup, schedule=replace(schedule, units=min(population.count, float(schedule.slots))))
    memory = begun(information) if schedule.averages else None
    return replace(
        state,
        setup=setup,
        population=population,
        information=information,
        memory=memory,
        rows=population.count,
        bearing=_bearing(state, population, found),
    )


def _bearing(state: State, population: Population, found: Moments) -> Bearing | None:
    setup = state.setup
    if state.lengths is None or not setup.bearings:
        return None
    rows = isotropic(population, found, state.lengths, setup.schedule.slots)
    width = setup.design.width
    if rows is None or _pulled(setup, rows) > MOST_PULLED:
        return None
    return Bearing(rows, Labels(setup.model, width), np.zeros(width))


def _pulled(setup: Setup, rows: Isotropic) -> float:
    """Nats, at most, by which the prior moves the mode of isotropic rows whose labels have uncertain slopes."""
    assert setup.curvature is not None
    narrowest = float(np.max(setup.prior.precision(np.zeros(setup.design.width)).diagonal()[:-1] / rows.scale**2))
    known = rows.count * float(setup.curvature(np.array([STEEPEST]))[0])
    return 0.5 * (narrowest * STEEPEST) ** 2 / known


def conceivable(setup: Setup) -> bool:
    """Whether declared facts leave room for isotropic rows, and noise is such that it pays to believe in them."""
    target, known = setup.design.target, setup.known
    numbers = not np.any(known.indicators | known.signs) and len(known.group) >= LEAST_COLUMNS
    labels = target is not None and target.type == "binary" and setup.curvature is not None
    noisy = setup.schedule.crowded and setup.schedule.noise >= LEAST_NOISE
    tested = setup.schedule.rounds > max(TESTS)
    return bool(labels and numbers and noisy and tested and setup.rows_per_unit == 1)


def columns(setup: Setup, scale: float, theta: Array64, clip: float) -> InformationMomentSum:
    """The question for the information of single columns at ``theta``."""
    return InformationMomentSum(scale, setup.design.width, intercept=setup.design.intercept, theta=theta, clip=clip)


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


def _first_information(rng: np.random.Generator, setup: Setup, population: Population, theta: Array64) -> Array64:
    """The population's at the start, prior included."""
    x = population.rows(rng, max(_ROWS, 4 * setup.design.width))
    rows = setup.model.fold(x, np.zeros(len(x))).astype(np.float32)
    return information_of(setup, population, rows, theta) + setup.prior.precision(theta)
