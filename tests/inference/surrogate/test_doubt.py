"""Noise counts by the less favourable of two beliefs about the information, and by the way of the last rounds."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.inference.protocol import Array64
from app.inference.surrogate.belief import believable
from app.inference.surrogate.doubt import doubted, expected
from app.inference.surrogate.release import released
from app.inference.surrogate.state import State
from tests.inference.surrogate.tables import Case, ended

VARIANCE = 0.01


@cache
def _ended() -> State:
    """Both beliefs agree, noise is alike in all directions, and the last rounds stayed where they were."""
    state = ended(Case(features=3), 2.0)
    assert state.mode is not None
    scores = tuple(replace(score, theta=state.theta) for score in state.scores)
    mode = replace(state.mode, variance=VARIANCE, kept=np.eye(4), shape=None)
    return replace(state, mode=mode, scores=scores, expected=state.information)


def _nats(state: State) -> float:
    """Of noise alike in all directions, but for what is doubted."""
    noise = doubted(state, VARIANCE * state.information)
    return 0.5 * float(np.trace(np.linalg.solve(state.information, noise)))


def _along(state: State) -> Array64:
    """A direction of unit length by the information, ``(D,)``."""
    first = np.eye(4)[0]
    return np.asarray(first / np.sqrt(first @ state.information @ first))


def _expecting(state: State, times: float) -> State:
    """Where the population's information is so many times the belief along one direction, and else the belief."""
    dual = state.information @ _along(state)
    return replace(state, expected=state.information + (times - 1) * np.outer(dual, dual))


def test_noise_stays_where_both_agree() -> None:
    state = _ended()
    np.testing.assert_allclose(doubted(state, VARIANCE * state.information), VARIANCE * state.information, rtol=1e-9)


@pytest.mark.parametrize(("times", "noise"), [(3.0, 3.0), (50.0, 5.0), (0.2, 5.0), (0.001, 1000.0)])
def test_the_less_favourable_counts_in_its_direction_alone(times: float, noise: float) -> None:
    assert _nats(_expecting(_ended(), times)) == pytest.approx(0.5 * VARIANCE * (3 + noise))


def test_the_way_of_the_last_three_rounds_counts_beyond_what_noise_explains() -> None:
    state, length = _ended(), 0.7

    def since(rounds: int) -> State:
        """It moved after the score that is so many rounds back."""
        back = [replace(score, theta=state.theta - length * _along(state)) for score in state.scores[:-rounds]]
        return replace(state, scores=(*back, *state.scores[-rounds:]))

    still = _nats(state)
    assert _nats(since(2)) - still == pytest.approx(0.5 * (length**2 - 3 * 4 * VARIANCE))
    assert _nats(since(3)) == pytest.approx(still)
    noisy = replace(since(2), mode=replace(state.mode, variance=length**2))  # type: ignore[type-var]
    assert _nats(noisy) == pytest.approx(still)


def test_a_bearing_that_is_not_doubted_needs_no_search() -> None:
    def asked(*, doubted: bool) -> State:
        bearing: Any = SimpleNamespace(doubted=doubted)
        return replace(_ended(), theta=_ended().theta + _along(_ended()), bearing=bearing)

    assert _nats(asked(doubted=False)) == pytest.approx(_nats(_ended()))
    assert _nats(asked(doubted=True)) > 2 * _nats(_ended())


def test_what_is_expected_is_the_populations_information_at_the_end() -> None:
    state = ended(Case(features=3), 2.0)
    assert state.setup.curvature is not None
    found = expected(np.random.default_rng(0), state)
    assert found is not None
    assert state.expected is not None
    prior = state.setup.prior.precision(state.theta)
    np.testing.assert_allclose(found, state.setup.curvature.information(state.population, state.theta) + prior)
    np.testing.assert_allclose(found, state.expected)


def test_where_nothing_can_be_expected_nothing_is_believed() -> None:
    blind = replace(_ended(), expected=None)
    np.testing.assert_array_equal(doubted(blind, blind.information), blind.information)
    assert believable(_ended())
    assert not believable(blind)
    assert released(blind).diagnostics["trusted"] is False
