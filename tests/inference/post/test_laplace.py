"""Laplace draws and their failure."""

import numpy as np
import pytest

from app.inference.core.model import Array64, Expansion
from app.inference.core.priors import NormalPrior
from app.inference.models.logistic import LogisticRegression
from app.inference.post.laplace import MAX_HALVINGS, Laplace, LaplaceDiverged, fit_laplace


def test_draws_have_the_covariance_of_the_factor_and_come_in_pairs() -> None:
    factor = np.array([[2.0, 0.0], [1.0, 0.5]])
    approximation = Laplace(np.array([1.0, -3.0]), factor)
    draws = approximation.draw(np.random.default_rng(0), 60_000)
    np.testing.assert_allclose(draws.mean(axis=0), approximation.mean, atol=1e-12)
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(factor @ factor.T), rtol=0.05)
    assert approximation.draw(np.random.default_rng(0), 7).shape == (7, 2)


def test_without_weight_the_posterior_is_the_prior() -> None:
    found = fit_laplace(
        LogisticRegression(2), np.ones((3, 2)), np.zeros(3), NormalPrior(np.full(2, 0.5)), np.array([4.0, -4.0])
    )
    np.testing.assert_allclose(found.mean, 0, atol=1e-12)
    np.testing.assert_allclose(found.factor, 2 * np.eye(2))


def test_separable_heavy_points_have_a_finite_mode() -> None:
    model, rows = LogisticRegression(3), np.full((5, 3), 100.0)
    found = fit_laplace(model, rows, np.full(5, 1e12), NormalPrior(np.ones(3)), np.zeros(3))
    assert np.all(np.isfinite(found.mean))
    gradient = model.expand(rows, np.full(5, 1e12), found.mean).gradient - found.mean
    assert np.all(np.abs(gradient) < 1e-3)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_points_that_are_not_finite_are_refused() -> None:
    with pytest.raises(LaplaceDiverged):
        fit_laplace(LogisticRegression(2), np.full((2, 2), np.nan), np.ones(2), NormalPrior(np.ones(2)), np.zeros(2))


class _Falling:
    """A likelihood whose gradient is wrong, as by rounding at huge weights: it falls beyond ``radius`` from 0."""

    def __init__(self, value: float, radius: float) -> None:
        self.value, self.radius, self.expansions = value, radius, 0

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        self.expansions += 1
        return Expansion(self.value - 1e6 * float(np.any(np.abs(theta) > self.radius)), np.ones(2), np.eye(2))


@pytest.mark.parametrize(
    ("value", "radius", "most"),
    [pytest.param(0.0, 0.0, MAX_HALVINGS + 1, id="no step rises"), pytest.param(-1e9, 1e-3, 50, id="no rise shows")],
)
def test_a_search_ends_where_steps_gain_nothing(value: float, radius: float, most: int) -> None:
    model = _Falling(value, radius)
    found = fit_laplace(model, np.zeros((1, 2)), np.ones(1), NormalPrior(np.ones(2)), np.zeros(2))
    assert np.max(np.abs(found.mean)) <= radius
    assert model.expansions <= most


class _Overflowing:
    """A likelihood beyond double precision: its derivatives are finite, its value is not."""

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        return Expansion(float("nan"), np.ones(2), np.eye(2))


def test_a_search_that_ends_at_no_finite_value_is_refused() -> None:
    with pytest.raises(LaplaceDiverged):
        fit_laplace(_Overflowing(), np.zeros((1, 2)), np.ones(1), NormalPrior(np.ones(2)), np.zeros(2))


def test_a_search_shortens_a_step_that_is_far_too_long() -> None:
    """At the start, the curvature is that of a wide prior alone."""
    model, rows, weights = LogisticRegression(1), np.array([[-1.0], [1.0]]), np.array([5e6, 3.0])
    prior = NormalPrior(np.array([1e6]))
    found = fit_laplace(model, rows, weights, prior, np.array([50.0]))
    np.testing.assert_allclose(found.mean, -np.log(5e6 / 3.0), rtol=1e-6)
