"""Columns of which matrices know far less than rows seem to tell."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate.contribution_bounds import information_noise
from app.inference.methods.surrogate.disputed import disputed
from app.inference.methods.surrogate.efficiency import concentration
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import make_state_at_zero

MEAN, DEVIATION = np.array([0.1, -0.2, 1.0]), np.array([0.12, 0.3])
ROWS = Population(1e5, MEAN, np.pad(np.diag(DEVIATION**2), (0, 1)), unknown_levels=False)


@pytest.fixture(scope="module")
def state() -> State:
    found = make_state_at_zero(ROWS)
    return replace(found, setup=replace(found.setup, schedule=replace(found.setup.schedule, sigma=0.01)))


def _known(state: State, share: float) -> State:
    """A belief that knows this share of what rows tell of the first column, all others being known."""
    covariance = np.linalg.inv(state.information)
    covariance[0, 0] /= share
    return replace(state, information=np.linalg.inv(covariance))


@pytest.mark.parametrize("share", [1.5, 1.0, 0.6, 0.4, 0.25, 0.05, 0.01])
def test_the_less_matrices_know_the_less_is_relied_on(state: State, share: float) -> None:
    found = disputed(_known(state, share))
    np.testing.assert_allclose(found.wrong[[0, 2]], np.clip((0.5 - share) / 0.4, 0, 1), atol=1e-2)
    np.testing.assert_array_equal(found.wrong[[1, 3]], 0)


def test_noise_in_matrices_is_not_taken_for_a_level(state: State) -> None:
    """The noisier they are, the less they are relied on: all of it, part of it, nothing."""
    found = list[tuple[float, float]]()
    for sigma in np.geomspace(0.01, 1000, 300):
        loud = replace(state, setup=replace(state.setup, schedule=replace(state.setup.schedule, sigma=float(sigma))))
        noise = information_noise(loud.setup.schedule, 0, concentration(loud))
        found.append((noise, float(disputed(_known(loud, 0.05)).wrong[0])))
    assert all(wrong == 1 for noise, wrong in found if noise < 0.12)
    assert all(wrong == 0 for noise, wrong in found if noise > 0.18)
    between = [wrong for noise, wrong in found if 0.12 < noise < 0.18]
    assert between == sorted(between, reverse=True)
    assert 0 < between[0] < 1


def test_rows_are_where_tails_begin_or_as_far_as_noise_may_hide_them(state: State) -> None:
    rows = disputed(replace(state, population=replace(ROWS, hiding=np.array([False, True])))).rows
    near, bound = MEAN[0] + 2.5 * DEVIATION[0] * np.array([-1, 1]), np.array([-1.0, 1.0])
    np.testing.assert_allclose(rows[[0, 2]], [[near[0], -0.2, 1], [near[1], -0.2, 1]])
    np.testing.assert_allclose(rows[[1, 3]], [[0.1, bound[0], 1], [0.1, bound[1], 1]])


def test_they_may_be_anywhere_between(state: State) -> None:
    nearer = disputed(replace(state, population=replace(ROWS, hiding=np.array([False, True])))).nearer
    np.testing.assert_allclose(nearer[[0, 2]], 1)
    np.testing.assert_allclose(nearer[:, -1], 1)
    np.testing.assert_allclose(nearer[[1, 3], 0], [0.75 / 0.8, 0.75 / 1.2])


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, 1e154])
def test_w14_whatever_is_believed_of_rows_shares_are_shares(state: State, value: float) -> None:
    hostile = replace(ROWS, covariance=np.diag([value, 0.1, 0.0]), mean=np.array([value, 0.0, 1.0]))
    with np.errstate(all="ignore"):
        wrong = disputed(replace(state, population=hostile)).wrong
    assert np.all((wrong >= 0) & (wrong <= 1))
