"""Every model's log-likelihood and its derivatives, against finite differences and in both precisions."""

from collections.abc import Callable

import numpy as np
import pytest

from app.inference.core.model import Array64
from tests.conformance.models import ModelCase, N, S

STEP = 1e-5


def _differences(f: Callable[[Array64], float], at: Array64) -> Array64:
    """Central finite differences of a scalar function, in the shape of ``at``."""
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += STEP
        down[index] -= STEP
        gradient[index] = (f(up) - f(down)) / (2 * STEP)
    return gradient


def test_gradient_in_points_is_that_of_the_log_likelihood(case: ModelCase) -> None:
    rng, model = np.random.default_rng(0), case.model()
    u, y, cotangent = case.x(rng), case.targets(rng, N), rng.standard_normal(S)
    draws = case.draws(rng)

    def value(u: Array64, y: Array64) -> float:
        return float(np.sum(model.log_likelihood(model.fold(u, y), draws) @ cotangent))

    by_point, by_target = model.point_gradient(u, y, draws, cotangent)
    scale = 1 + np.abs(by_point).max()
    np.testing.assert_allclose(by_point, _differences(lambda at: value(at, y), u), atol=1e-8 * scale)
    assert (by_target is None) is (case.good is None or case.good.type in {"binary", "categorical"})
    if by_target is not None:
        np.testing.assert_allclose(by_target, _differences(lambda at: value(u, at), y), atol=1e-8 * scale)
        assert np.all(model.target_step(y) > 0)


def test_potentials_and_gradient_in_points_are_the_same_together(case: ModelCase) -> None:
    rng, model = np.random.default_rng(6), case.model()
    u, y, draws, cotangent = case.x(rng), case.targets(rng, N), case.draws(rng), rng.standard_normal(S)
    potentials, pull_back = model.point_potentials(u, y, draws)
    np.testing.assert_allclose(potentials, model.log_likelihood(model.fold(u, y), draws), rtol=1e-12, atol=1e-12)
    potentials[...] = np.nan
    for gradient, expected in zip(pull_back(cotangent), model.point_gradient(u, y, draws, cotangent), strict=True):
        assert (gradient is None) is (expected is None)
        assert gradient is None or expected is None or np.allclose(gradient, expected, rtol=1e-12, atol=1e-12)


def test_potentials_of_distant_points_are_finite_in_single_precision(case: ModelCase) -> None:
    rng, model = np.random.default_rng(6), case.model()
    u, y, draws = (each.astype(np.float32) for each in (case.x(rng), case.targets(rng, N), case.wild_draws(rng)))
    potentials, pull_back = model.point_potentials(u, y, draws)
    assert np.all(np.isfinite(potentials))
    assert np.all(np.isfinite(pull_back(np.ones(S, dtype=np.float32))[0]))


def test_gradient_in_points_is_the_same_in_single_precision(case: ModelCase) -> None:
    for single, double in _point_gradients(case, 1.0):
        np.testing.assert_allclose(single, double, atol=1e-5 * (1 + np.abs(double).max()))


def test_gradient_in_distant_points_is_finite_in_single_precision(case: ModelCase) -> None:
    assert all(np.all(np.isfinite(single)) for single, _ in _point_gradients(case, 30.0))


def _point_gradients(case: ModelCase, spread: float) -> list[tuple[Array64, Array64]]:
    """Gradients in single and in double precision, at points and draws of that spread."""
    rng, model = np.random.default_rng(0), case.model()
    exact = (spread * case.x(rng), case.targets(rng, N), spread * case.draws(rng), rng.standard_normal(S))
    single, double = (model.point_gradient(*(each.astype(to) for each in exact)) for to in (np.float32, np.float64))
    return [(a, b) for a, b in zip(single, double, strict=True) if a is not None and b is not None]


def test_expansion_is_that_of_the_log_likelihood(case: ModelCase) -> None:
    rng, model = np.random.default_rng(1), case.model()
    rows, weights, theta = case.rows(rng), rng.uniform(0, 3, N), case.theta(rng)
    expansion = model.expand(rows, weights, theta)

    def value(at: Array64) -> float:
        return float(weights @ model.log_likelihood(rows, at[None, :])[:, 0])

    scale = 1 + np.abs(expansion.information).max()
    assert expansion.value == pytest.approx(value(theta), rel=1e-12)
    np.testing.assert_allclose(expansion.gradient, _differences(value, theta), atol=1e-9 * scale)
    moves = STEP * np.eye(model.dimension)
    slopes = [[model.expand(rows, weights, theta + way * move).gradient for move in moves] for way in (1, -1)]
    numeric = (np.array(slopes[1]) - np.array(slopes[0])) / (2 * STEP)
    np.testing.assert_allclose(expansion.information, numeric, atol=1e-8 * scale)


def test_potentials_are_finite_and_equal_in_both_precisions(case: ModelCase) -> None:
    rng, model = np.random.default_rng(2), case.model()
    rows, draws = case.rows(rng), case.wild_draws(rng)
    double = model.log_likelihood(rows, draws)
    out = np.empty((N, S), dtype=np.float32)
    single = model.log_likelihood(rows.astype(np.float32), draws.astype(np.float32), out=out)
    assert single is out
    assert np.all(np.isfinite(double))
    np.testing.assert_allclose(single, np.maximum(double, case.least_single), rtol=1e-4, atol=1e-4)


def test_losses_of_pairs_are_negative_potentials_up_to_a_constant(case: ModelCase) -> None:
    rng, model = np.random.default_rng(2), case.model()
    rows, centre, deviations = case.rows(rng), case.theta(rng), 0.3 * case.draws(rng)
    expected = -model.log_likelihood(rows, np.concatenate((centre + deviations, centre - deviations)))
    x, c, h = (each.astype(np.float32) for each in (rows, centre, deviations))
    for out in (np.empty_like(expected, dtype=np.float32), np.empty_like(expected.T, dtype=np.float32).T):
        difference = model.paired_losses(x, c, h, out) - expected
        np.testing.assert_allclose(difference - difference[:, :1], 0, atol=1e-4)
