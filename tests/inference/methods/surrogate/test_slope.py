"""Scores along a steep slope, bounded by themselves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.inference.methods.surrogate.contribution_bounds import score_bound
from app.inference.methods.surrogate.directions import Kept
from app.inference.methods.surrogate.efficiency import _apart, efficiency
from app.inference.methods.surrogate.matrices import metric
from app.inference.methods.surrogate.population import Population
from app.inference.methods.surrogate.slope import STEEP, in_parts, turned
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, run_all_steps

COUNT, THETA = 50_000.0, np.array([9.0, -12.0, 0.5])
MEAN, COVARIANCE = np.array([0.1, 0.0, 1.0]), np.diag([0.3, 0.3, 0.0])


@pytest.fixture(scope="module")
def state() -> State:
    """Steep labels, and the right information."""
    found = run_all_steps(Case(features=2), 5.0)
    population = Population(COUNT, MEAN, COVARIANCE)
    return _at(replace(found, population=population), THETA)


def _at(state: State, theta: np.ndarray) -> State:
    assert state.setup.curvature is not None
    information = state.setup.curvature.information(state.population, theta) + np.eye(3)
    return replace(state, theta=theta, information=information)


def test_the_parts_bounds_are_those_of_a_row(state: State) -> None:
    """Up to the furthest predictor along the parameter; across it, rows are as long as they would be alone."""
    within = metric(state.information)
    said, apart = parts = in_parts(state, within)
    x = np.array([[0.3, 0.1, 1.0]])
    predictor, bound = float(x[0] @ THETA), score_bound(state.setup.schedule)
    assert 0 < apart < bound
    assert apart / abs(float(said.whitening[-1] @ x[0])) == pytest.approx(parts.furthest(THETA) / abs(predictor))
    basis, length = turned(within, THETA)
    assert (basis.T @ within.whitening @ x[0])[-1] == pytest.approx(predictor / length)
    across = np.linalg.norm(said.whitening[:-1] @ x[0]) / np.sqrt(bound**2 - apart**2)
    assert across == pytest.approx(np.linalg.norm((basis.T @ within.whitening @ x[0])[:-1]) / bound)
    np.testing.assert_allclose(said.factor @ said.whitening, np.eye(3), atol=1e-9)


def test_slopes_that_are_not_steep_are_asked_as_one(state: State) -> None:
    deviation = float(np.sqrt(THETA @ COVARIANCE @ THETA))
    for factor, parted in ((0.95, False), (1.05, True)):
        there = _at(state, factor * STEEP / deviation * THETA)
        assert bool(in_parts(there, metric(there.information)).apart) == parted


@pytest.mark.parametrize("scale", [1e-300, 1e7, 1e100, np.nan])
def test_whatever_is_believed_there_is_a_query(state: State, scale: float) -> None:
    hostile = replace(state, population=replace(state.population, covariance=scale * COVARIANCE))
    said, apart = in_parts(hostile, metric(state.information))
    assert np.all(np.isfinite(said.whitening))
    assert 0 <= apart < score_bound(state.setup.schedule)


def test_what_is_kept_along_the_parameter_is_restored_by_itself(state: State) -> None:
    """By the rows themselves: the derivative of the part's sum over the information along the parameter."""
    parts = in_parts(state, metric(state.information))
    kept = efficiency(np.random.default_rng(0), state, 12, *parts)
    t = state.population.rows(np.random.default_rng(1), 200_000) @ THETA
    information = expit(t) * expit(-t) * t**2
    weight = np.minimum(1, parts.furthest(THETA) / (np.maximum(expit(t), expit(-t)) * np.abs(t)))
    along = float(parts.metric.whitening[-1] @ kept.back @ parts.metric.factor[:, -1])
    assert 1 / along == pytest.approx(float(weight @ information / information.sum()), abs=0.02)


def test_either_part_has_a_share_of_its_own(state: State) -> None:
    parts = in_parts(state, metric(state.information))
    back = _apart(Kept(0.5, 2 * np.eye(3)), 0.8, parts).back
    np.testing.assert_allclose(parts.metric.whitening @ back @ parts.metric.factor, np.diag([2, 2, 1.25]), atol=1e-9)
