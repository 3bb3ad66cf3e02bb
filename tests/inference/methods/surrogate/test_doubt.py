"""Noise counts by the less favourable of two beliefs about the information, and by the way of the last rounds."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.credibility import believable
from app.inference.methods.surrogate.doubt import doubted_noise, population_information
from app.inference.methods.surrogate.release import released
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, Drawn, build, compute_after, compute_losses, run_all_steps

VARIANCE, EARLIER = 0.01, 0.05
"""Of the mode's noise, and what it was three rounds ago, in a direction of the information's metric."""
RNG = np.random.default_rng(0)


@cache
def _ended() -> State:
    """Both beliefs agree, noise is alike in all directions, and the last rounds stayed where they were."""
    state = run_all_steps(Case(features=3), 2.0)
    assert state.mode is not None
    *earlier, last = state.scores
    earlier = [replace(score, theta=state.theta, variance=EARLIER * (len(earlier) - 2)) for score in earlier]
    mode = replace(state.mode, variance=VARIANCE, kept=np.eye(4), shape=None)
    scores = (*earlier, replace(last, theta=state.theta))
    return replace(state, mode=mode, scores=scores, population_information=state.information)


def _noise(state: State) -> Array64:
    """What is said of noise alike in all directions, in units of the belief, ``(4, 4)``."""
    root = np.linalg.inv(np.linalg.cholesky(state.information))
    return np.asarray(root @ doubted_noise(state, VARIANCE * state.information) @ root.T)


def _nats(state: State) -> float:
    return 0.5 * float(np.trace(_noise(state)))


def _directions() -> Array64:
    """Orthonormal ones in the metric, as columns, along no axis."""
    return np.linalg.qr(RNG.standard_normal((4, 4)))[0]


def _expecting(state: State, times: Sequence[float], directions: Array64) -> State:
    """Where the population tells so many times the belief, by direction."""
    root = np.linalg.cholesky(state.information)
    told = (directions * np.array(times)) @ directions.T
    return replace(state, population_information=root @ told @ root.T)


def test_noise_stays_where_both_agree() -> None:
    np.testing.assert_allclose(_noise(_ended()), VARIANCE * np.eye(4), atol=1e-12)


def test_the_less_favourable_counts_direction_by_direction() -> None:
    """By the ratio, whichever is larger: up to 5 where the population's is, to 10^6 where the belief is."""
    directions = _directions()
    found = _noise(_expecting(_ended(), [3.0, 50.0, 0.2, 1e-9], directions))
    expected = VARIANCE * (directions * [3.0, 5.0, 5.0, 1e6]) @ directions.T
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_noise_of_any_shape_is_taken_apart_by_the_same_directions() -> None:
    directions, shape = _directions(), RNG.standard_normal((4, 4))
    state, root = _ended(), np.linalg.cholesky(_ended().information)
    state = _expecting(state, [4.0, 1.0, 1.0, 0.25], directions)
    found = doubted_noise(state, root @ shape @ shape.T @ root.T)
    stretched = (directions * [2.0, 1.0, 1.0, 2.0]) @ directions.T @ shape
    np.testing.assert_allclose(found, root @ stretched @ stretched.T @ root.T, rtol=1e-9)


def _moved(state: State, steps: Sequence[float], direction: Array64) -> State:
    """It went these lengths in its last rounds, in the metric."""
    way = np.linalg.solve(np.linalg.cholesky(state.information).T, direction)
    places = [state.theta - sum(steps[k:]) * way for k in range(len(steps))]
    last = [replace(score, theta=place) for score, place in zip(state.scores[-3:], places, strict=True)]
    return replace(state, scores=(*state.scores[:-3], *last))


CHANCE = 1.5 * 4 * (EARLIER - VARIANCE)


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((0.7, 0.7, 0.7), 2.1),
        ((1.5, 0.5, 0.3), 1.2),
        ((0.1, 1.0, 1.0), 2.1),
        ((2.0, 0.1, 0.0), 0.15),
        ((3.0, -0.5, -0.5), 0.0),
    ],
    ids=["still going", "slower", "faster", "arrived", "turned back"],
)
def test_as_much_way_counts_as_the_later_rounds_went_beyond_noise(steps: tuple[float, ...], left: float) -> None:
    state, direction = _ended(), _directions()[:, 0]
    found = _noise(_moved(state, steps, direction)) - VARIANCE * np.eye(4)
    np.testing.assert_allclose(found, max(left**2 - CHANCE, 0) * np.outer(direction, direction), atol=1e-9)


def test_a_way_costs_more_where_the_population_tells_more() -> None:
    directions = _directions()
    going = _moved(_expecting(_ended(), [3.0, 0.1, 1.0, 1.0], directions), (1.0, 1.0, 1.0), directions[:, 0])
    assert directions[:, 0] @ _noise(going) @ directions[:, 0] == pytest.approx(3 * (VARIANCE + 9 - CHANCE))
    going = _moved(_expecting(_ended(), [3.0, 0.1, 1.0, 1.0], directions), (1.0, 1.0, 1.0), directions[:, 1])
    assert directions[:, 1] @ _noise(going) @ directions[:, 1] == pytest.approx(10 * VARIANCE + 9 - CHANCE)


def test_in_few_rounds_and_before_any_the_way_is_nothing() -> None:
    state = _moved(_ended(), (1.0, 1.0, 1.0), _directions()[:, 0])
    assert _nats(state) > 1
    for scores in (state.scores[-3:], state.scores[-1:], ()):
        assert _nats(replace(state, scores=scores)) == pytest.approx(2 * VARIANCE)


@pytest.mark.parametrize("family", ["gaussian-mean", "logistic-regression", "probit-regression"])
@pytest.mark.parametrize("rounds", [2, 3, 4, 5])
def test_a_search_of_few_rounds_that_arrived_says_so(family: str, rounds: int) -> None:
    """Its first step, the whole way from zero, is no sign that there is more of it; two rounds end with a long one."""
    case = Case(family, features=3)
    points = build(case, case.plan(1.0, rounds=rounds), Drawn(0))
    assert points.diagnostics["trusted"] is (rounds > 2 or family == "gaussian-mean")
    assert points.diagnostics["noise_kl"] < 4 * compute_losses(case, points)[0] + 1


def test_a_bearing_that_is_not_doubted_needs_no_search() -> None:
    case = Case(design="normal", features=20, rows=100_000, slots=100_000, seed=3)
    plan = case.plan(95.0)
    state = compute_after(case, plan, plan.steps)
    bearing = state.bearing
    assert bearing is not None
    going = tuple(replace(score, theta=state.theta - 0.5) for score in _ended().scores)
    sure, unsure = (replace(state, scores=going, bearing=replace(bearing, doubted=each)) for each in (False, True))
    nothing = doubted_noise(sure, 0 * state.information)
    np.testing.assert_array_equal(nothing, 0)
    assert np.trace(doubted_noise(unsure, 0 * state.information)) > 0


def test_what_the_population_says_is_its_information_at_the_end() -> None:
    state = run_all_steps(Case(features=3), 2.0)
    assert state.setup.curvature is not None
    found = population_information(np.random.default_rng(0), state)
    assert found is not None
    assert state.population_information is not None
    prior = state.setup.prior.precision(state.theta)
    np.testing.assert_allclose(found, state.setup.curvature.information(state.population, state.theta) + prior)
    np.testing.assert_allclose(found, state.population_information)


def test_where_the_population_says_nothing_nothing_is_believed() -> None:
    state = run_all_steps(Case(features=3), 2.0)
    unknown = replace(state, population=replace(state.population, count=np.nan))
    assert population_information(np.random.default_rng(0), unknown) is None
    blind = replace(_ended(), population_information=None)
    np.testing.assert_array_equal(doubted_noise(blind, blind.information), blind.information)
    assert believable(_ended())
    assert not believable(blind)
    assert released(blind).diagnostics["trusted"] is False
