"""Negative binomial regression: its likelihood by SciPy, and bounded residuals by enumeration of counts."""

import numpy as np
import pytest
from scipy.stats import nbinom

from app.inference.core.model import Array64
from app.inference.models.negative_binomial import NegativeBinomialRegression
from app.inference.models.stein import bound_residuals, choose_length
from support.underflow import raise_underflow

DISPERSIONS = pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 10.0, 1e3])
CUTS = np.array([0.01, 0.3, 1.0, 2.0, 4.0, 30.0, 1e6])
"""Bounds of residuals, in standard deviations."""


def _law(mean: float, alpha: float) -> tuple[Array64, Array64]:
    """Counts with nearly all of the probability, and their probabilities."""
    law = nbinom(1 / alpha, 1 / (1 + alpha * mean))
    values = np.arange(min(law.isf(1e-14) + 1, 4e6))
    return values, law.pmf(values)


@DISPERSIONS
def test_the_log_likelihood_is_scipys_up_to_a_constant(alpha: float) -> None:
    rng = np.random.default_rng(0)
    x, y = np.column_stack((rng.uniform(-1, 1, 9), np.ones(9))), rng.integers(0, 30, 9).astype(float)
    draws = rng.standard_normal((5, 2))
    means = np.exp(x @ draws.T)
    exact = nbinom.logpmf(y[:, None], 1 / alpha, 1 / (1 + alpha * means))
    model = NegativeBinomialRegression(2, 0, 30, alpha)
    found = model.log_likelihood(model.fold(x, y), draws)
    np.testing.assert_allclose(found - found[:, :1], exact - exact[:, :1], rtol=1e-7, atol=1e-7)


@DISPERSIONS
def test_a_residual_times_its_scale_is_the_score(alpha: float) -> None:
    rng = np.random.default_rng(1)
    x, y, theta = np.column_stack((rng.uniform(-1, 1, 50), np.ones(50))), rng.integers(0, 30, 50), np.array([0.7, -0.2])
    model = NegativeBinomialRegression(2, 0, 30, alpha)
    rows = model.fold(x, y.astype(float)).astype(np.float32)
    found = model.residuals(rows, theta)
    np.testing.assert_allclose((found.standard * found.scale)[:, None] * x, model.scores(rows, theta), rtol=1e-4)


@pytest.mark.long
@DISPERSIONS
@pytest.mark.parametrize("mean", [1e-6, 0.2, 1.0, 7.3, 300.0])
def test_bounded_residuals_have_an_exact_mean_of_zero(alpha: float, mean: float) -> None:
    values, probabilities = _law(mean, alpha)
    if probabilities.sum() < 1 - 1e-9:
        pytest.skip("too many counts to enumerate")
    deviation = np.sqrt(mean / (1 + alpha * mean))
    for length in choose_length(np.full(len(CUTS), mean), alpha, CUTS * deviation)[0]:
        residuals = bound_residuals(values, np.full_like(values, mean), alpha, length)
        spread = np.sqrt(probabilities @ np.square(residuals))
        assert abs(probabilities @ residuals) < 1e-6 * spread


@DISPERSIONS
@pytest.mark.parametrize("mean", [2e-9, 1e-3, 0.7, 1.7, 5.2, 40.0, 1e4, 4e8])
def test_residuals_keep_the_stated_bound_which_is_tight(alpha: float, mean: float) -> None:
    deviation, width = np.sqrt(mean / (1 + alpha * mean)), np.sqrt(mean * (1 + alpha * mean))
    y = np.concatenate(
        (np.linspace(0, 60, 2401), mean + width * np.linspace(-9, 40, 2000), np.geomspace(0.1, 1e14, 500))
    )
    y = y[y >= 0]
    lengths, bounds = choose_length(np.full(len(CUTS), mean), alpha, CUTS * deviation)
    for length, bound, cut in zip(lengths, bounds, CUTS * deviation, strict=True):
        most = np.max(np.abs(bound_residuals(y, np.full(len(y), mean), alpha, length)))
        assert most <= bound
        assert most > 0.7 * bound or cut > 5 * deviation or alpha > 100
        assert bound <= max(cut, 2.5 * (deviation + np.sqrt(alpha)))


def test_loose_bounds_leave_residuals_unchanged() -> None:
    y, mean = np.arange(50.0), np.full(50, 3.0)
    length, _ = choose_length(mean, 0.5, np.full(50, 1e6))
    np.testing.assert_allclose(bound_residuals(y, mean, 0.5, length), (y - 3) / 2.5, rtol=1e-6, atol=1e-9)


@DISPERSIONS
@pytest.mark.parametrize("clip", [0.02, 0.4, 2.0, 50.0])
def test_no_target_exceeds_the_bound(alpha: float, clip: float) -> None:
    """W5: counts from 0 to 1e9, and impossible ones."""
    rng = np.random.default_rng(1)
    y = np.concatenate((np.arange(2000.0), np.geomspace(2000, 1e9, 1000), np.linspace(0, 5, 200), [-1.0, -1e9]))
    transform = rng.standard_normal((3, 3))
    for intercept in (-12.0, -1.0, 1.0, 6.0, 18.0):
        model = NegativeBinomialRegression(3, 0, 1e9, alpha)
        rows = model.fold(np.tile([0.3, -0.8, 1.0], (len(y), 1)), y).astype(np.float32)
        scores = model.bounded_scores(rows, np.array([0.0, 0.0, intercept]), transform, clip)
        assert np.linalg.norm(scores.astype(np.float64), axis=1).max() <= clip


@DISPERSIONS
def test_no_mean_makes_a_subnormal_number(alpha: float) -> None:
    """W14: for all means in the row zone."""
    predictors = np.linspace(-25, 25, 4001)
    model = NegativeBinomialRegression(2, 0, 1e6, alpha)
    for y in (0.0, 1.0, 3.0, 1e6):
        rows = model.fold(np.column_stack((predictors, np.ones(4001))), np.full(4001, y)).astype(np.float32)
        theta = np.array([1.0, 0.0])
        raise_underflow(model.scores, rows, theta)
        raise_underflow(model.information_factors, rows, theta)
        raise_underflow(model.log_likelihood, rows, theta[None].astype(np.float32))
        for clip in (1e-3, 1.0, 1e3):
            raise_underflow(model.bounded_scores, rows, theta, np.eye(2), clip)


def test_drawn_counts_have_the_mean_and_variance() -> None:
    rng, model = np.random.default_rng(3), NegativeBinomialRegression(1, 0, 100, 0.5)
    y = model.sample_targets(rng, np.ones((200_000, 1)), np.array([np.log(4.0)]))
    assert y.mean() == pytest.approx(4.0, abs=0.05)
    assert y.var() == pytest.approx(4 + 0.5 * 16, rel=0.03)
    huge = model.sample_targets(rng, np.ones((9, 1)), np.array([1e6]))
    assert np.all(np.isfinite(huge))
