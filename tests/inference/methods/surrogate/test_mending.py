"""Guards that no honest run meets."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate.mending import LARGEST_PARAMETER, asked, steadied
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.state import State
from app.inference.private_zone.queries import PotentialSum
from support.surrogate_tables import Case, Script


def _state() -> State:
    case = Case(features=2)
    return DpPsviSurrogate().init(case.plan(3.0), case.facts, np.random.default_rng(0))


@pytest.mark.parametrize("said", [np.nan, np.inf, -np.inf, 1e300, -1e300, 40.0])
def test_an_answer_is_within_what_a_table_and_noise_could_say(said: float) -> None:
    """Up to 100 slots at 1 each, and 50 deviations of 2 / sqrt(1/4) = 4; over q."""
    schedule = Schedule(2.0, 0.5, 100, 3)
    answer = float(
        asked(Script(lambda length: np.full(length, said)), PotentialSum(np.zeros((1, 3)), 1.0), schedule, 0.25, 1.0)[0]
    )
    assert abs(answer) <= (100 + 50 * 4) / 0.5
    if abs(said) < 100:
        assert answer == said / 0.5


def test_a_state_that_can_be_asked_in_is_left_alone() -> None:
    state = _state()
    moved = replace(state, theta=state.theta + 1, information=7 * state.information)
    steady = steadied(moved, state)
    np.testing.assert_array_equal(steady.theta, moved.theta)
    assert steady.information is moved.information
    assert steady.surprise == moved.surprise


@pytest.mark.parametrize("theta", [np.nan, np.inf])
def test_what_cannot_be_mended_is_as_before_and_a_surprise(theta: float) -> None:
    state = _state()
    lost = replace(state, theta=np.full(3, theta), step=np.full(3, theta), information=2 * state.information)
    for moved in (lost, replace(state, information=-state.information)):
        steady = steadied(moved, state)
        np.testing.assert_array_equal(steady.theta, state.theta)
        np.testing.assert_array_equal(steady.step, state.step)
        np.testing.assert_array_equal(steady.information, state.information)
        assert steady.surprise == np.inf


def test_parameters_stay_within_their_public_range() -> None:
    state = _state()
    steady = steadied(replace(state, theta=np.array([1e300, -1e300, 5.0])), state)
    np.testing.assert_array_equal(steady.theta, [LARGEST_PARAMETER, -LARGEST_PARAMETER, 5.0])
