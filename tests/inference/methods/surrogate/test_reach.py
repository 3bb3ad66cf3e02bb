"""How far a step goes where few rows have a column."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.reach import LONGEST, LONGEST_OF_FEW, believed, within_reach
from app.inference.methods.surrogate.tails import Tails
from support.surrogate_tables import Case, run_all_steps

DEVIATIONS, MEANS = np.array([0.2, 0.5]), np.array([-0.96, 0.1])
TAILS = Tails(np.array([1.0, 0.0]), np.array([7.0, 6.0]), np.array([1.0, 0.0]), np.zeros((1, 2)), clear=True)


def _moved(move: np.ndarray, tails: Tails | None) -> np.ndarray:
    state = run_all_steps(Case(features=2), 20.0)
    population = Population(100.0, np.append(MEANS, 1.0), np.diag([*DEVIATIONS**2, 0.0]), tails)
    return within_reach(replace(state, population=population), move)


def test_rows_of_a_rare_level_change_by_so_much_at_most() -> None:
    """Beyond what all others do: they differ by seven deviations."""
    found = _moved(np.array([30.0, 5.0, 1.0]), TAILS)
    assert abs(found[0]) * 7 * 0.2 == pytest.approx(LONGEST_OF_FEW)
    assert found[1] == 5


def test_all_other_rows_change_as_they_would_have() -> None:
    move, other = np.array([30.0, 5.0, 1.0]), np.array([-0.96 - 0.2 / 7, 0.3, 1.0])
    np.testing.assert_allclose(other @ _moved(move, TAILS), other @ move)


def test_a_short_step_stays_as_it_is() -> None:
    move = np.array([0.5, 50.0, -1.0])
    np.testing.assert_array_equal(_moved(move, TAILS), move)
    np.testing.assert_array_equal(_moved(100 * move, None), 100 * move)


def _share(predictors: float, variance: float, *, first: bool = False, labels: bool = True) -> float:
    """Of a move along one column, which changes predictors by a hundred: rows have predictors of that size already."""
    state = run_all_steps(Case(features=2), 20.0)
    population = Population(100.0, np.array([0.0, 0.0, 1.0]), np.diag([1.0, 1.0, 0.0]))
    assert state.mode is not None
    score, mode = replace(state.scores[-1], variance=variance), None if first else state.mode
    setup = replace(state.setup, schedule=replace(state.setup.schedule, labels=labels))
    theta = np.array([predictors, 0.0, 0.0])
    there = replace(state, setup=setup, population=population, theta=theta, information=np.eye(3), scores=(score,))
    return believed(replace(there, mode=mode), np.array([100.0, 0.0, 0.0]), 1)


def test_a_clear_step_goes_half_as_far_as_predictors_are() -> None:
    """As far as noise in the last score, of squared length ``D v``, is unlikely to have made it."""
    assert _share(40.0, 0.0) == pytest.approx(0.2)
    assert _share(40.0, 100.0**2 / 6) == pytest.approx(0.1)


def test_a_step_that_noise_may_have_made_goes_as_far_as_ever() -> None:
    usual = LONGEST / 100
    assert _share(40.0, 1e6) == usual
    assert _share(40.0, 0.0, first=True) == usual
    assert _share(40.0, 0.0, labels=False) == usual
    assert _share(1.0, 0.0) == usual
