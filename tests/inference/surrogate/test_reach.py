"""How far a step goes where few rows have a column."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.surrogate.population import Population
from app.inference.surrogate.reach import LONGEST, LONGEST_FIRST, LONGEST_OF_FEW, believed, within_reach
from app.inference.surrogate.tails import Tails
from support.surrogate_tables import Case, ended

DEVIATIONS, MEANS = np.array([0.2, 0.5]), np.array([-0.96, 0.1])
TAILS = Tails(np.array([1.0, 0.0]), np.array([7.0, 6.0]), np.array([1.0, 0.0]), np.zeros((1, 2)), clear=True)


def _moved(move: np.ndarray, tails: Tails | None) -> np.ndarray:
    state = ended(Case(features=2), 20.0)
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


@pytest.mark.parametrize(("turn", "longest"), [(0, LONGEST_FIRST), (1, LONGEST)])
def test_step_changes_predictors_by_its_limit(turn: int, longest: float) -> None:
    """A move along one column of unit deviation, which would change predictors by a hundred."""
    population = Population(100.0, np.array([0.0, 0.0, 1.0]), np.diag([1.0, 1.0, 0.0]))
    state = replace(ended(Case(features=2), 20.0), population=population)
    assert believed(state, np.array([100.0, 0.0, 0.0]), turn) == pytest.approx(longest / 100)
