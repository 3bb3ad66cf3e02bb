"""Newton steps estimated from residuals, against a known gradient."""

import numpy as np
import pytest

from app.inference.methods.dp_psvi.convergence import (
    MOST_NATS,
    bound_error_in_sds,
    bound_error_nats,
    cover_error,
    estimate_newton_step,
    has_converged,
    measure_unclipped_share,
)
from tests.inference.support import DESIGN, MODEL, WIDTH


@pytest.mark.parametrize("count", [40_000, 40_001])
def test_the_estimated_step_is_the_newton_step(count: int) -> None:
    """The residual is linear in the draws; its even part has no effect."""
    rng, factor = np.random.default_rng(0), np.array([[2.0, 0.0], [1.0, 0.5]])
    mean, gradient, half = np.array([1.0, -3.0]), np.array([4.0, -1.0]), (count + 1) // 2
    deviations = np.linalg.solve(factor.T, rng.standard_normal((2, half))).T
    draws = np.concatenate([mean + deviations, mean - deviations[: count // 2]])
    residual = (draws - mean) @ gradient + np.square(draws - mean).sum(axis=1)
    expected = np.linalg.solve(factor @ factor.T, gradient)
    np.testing.assert_allclose(
        estimate_newton_step(draws, mean, residual), expected, atol=0.06 * np.abs(expected).max()
    )


def test_nats_of_pure_noise_match_the_stated_least() -> None:
    """The mean over 400 runs is within five standard errors of the stated least."""
    rng, found = np.random.default_rng(1), list[float]()
    for _ in range(400):
        steps = list[np.ndarray]()
        for _ in range(3):
            deviations = rng.standard_normal((20, 4))
            residual = 0.7 * rng.standard_normal(40)
            steps.append(estimate_newton_step(np.concatenate([deviations, -deviations]), np.zeros(4), residual))
        found.append(0.5 * float(np.square(np.mean(steps, axis=0)).sum()))
    stated = bound_error_nats(np.zeros(4), np.eye(4), 0.7, 40, 3)
    assert abs(np.mean(found) - stated) < 5 * np.std(found) / np.sqrt(len(found))


def test_errors_of_pure_noise_match_the_stated_ones() -> None:
    """Standard deviations of the steps over 2,000 runs, in units of a correlated posterior's."""
    rng, factor = np.random.default_rng(2), np.linalg.cholesky(np.array([[9.0, 2.0], [2.0, 0.5]]))
    steps = list[np.ndarray]()
    for _ in range(2000):
        deviations = np.linalg.solve(factor.T, rng.standard_normal((2, 20))).T
        draws, residual = np.concatenate([deviations, -deviations]), 0.7 * rng.standard_normal(40)
        steps.append(estimate_newton_step(draws, np.zeros(2), residual))
    sds = np.sqrt(np.linalg.inv(factor @ factor.T).diagonal())
    stated = bound_error_in_sds(np.zeros(2), factor, 0.7, 40, 1)
    np.testing.assert_allclose(np.std(steps, axis=0) / sds, stated, rtol=0.1)
    np.testing.assert_allclose(bound_error_in_sds(np.array([0.0, -3.0]) * sds, factor, 0.7, 40, 1), [stated[0], 3.0])


def test_doubt_covers_the_stated_errors_of_every_parameter() -> None:
    """Noise alone has the covariance of the steps; a long step adds its square."""
    covariance = np.array([[9.0, 2.0], [2.0, 0.5]])
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    noise = cover_error(np.zeros(2), factor, 0.7, 40, 3)
    assert noise is not None
    np.testing.assert_allclose(noise, covariance * 0.7**2 / (2 * 20 * 3))
    nats = bound_error_nats(np.zeros(2), factor @ factor.T, 0.7, 40, 3)
    assert 0.5 * np.trace(np.linalg.solve(covariance, noise)) == pytest.approx(nats)
    step = np.array([3.0, -0.1])
    moved = cover_error(step, factor, 0.7, 40, 3)
    assert moved is not None
    np.testing.assert_allclose(moved, noise + np.outer(step, step))
    stated = bound_error_in_sds(step, factor, 0.7, 40, 3) * np.sqrt(covariance.diagonal())
    assert np.all(np.sqrt(moved.diagonal()) >= stated)


def test_the_unclipped_share_is_a_share_of_lengths() -> None:
    rng = np.random.default_rng(0)
    x = DESIGN.sample(rng, 50)
    rows, draws = MODEL.fold(x, MODEL.starting_targets(rng, x)), rng.standard_normal((8, WIDTH))
    potentials = MODEL.log_likelihood(rows, draws)
    lengths = np.linalg.norm(potentials - potentials.mean(axis=1, keepdims=True), axis=1)
    clip = float(np.median(lengths))
    assert measure_unclipped_share(MODEL, rows, draws, clip, 1) == pytest.approx(
        np.minimum(lengths, clip).sum() / lengths.sum()
    )
    assert measure_unclipped_share(MODEL, rows, draws, 2 * clip, 4) == pytest.approx(
        measure_unclipped_share(MODEL, rows, draws, clip, 1)
    )
    assert measure_unclipped_share(MODEL, rows, draws, 1.01 * lengths.max(), 1) == 1
    assert measure_unclipped_share(MODEL, rows, draws, 1e-6 * clip, 1) < 1e-5


def test_a_long_step_counts_in_full() -> None:
    assert bound_error_nats(np.array([3.0]), np.array([[4.0]]), 0.1, 10, 100) == 18.0


@pytest.mark.parametrize(
    ("nats", "learned", "expected_verdict"),
    [(0.4, 0.0, True), (0.6, 0.0, False), (9.0, 100.0, True), (1.01 * MOST_NATS, 1e9, False), (np.nan, 1e9, False)],
)
def test_convergence_is_relative_to_the_learned_nats(nats: float, learned: float, expected_verdict: bool) -> None:
    assert has_converged(nats, learned) is expected_verdict
