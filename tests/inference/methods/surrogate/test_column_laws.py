"""Marginal laws of columns: their posterior, and draws from it."""

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.column_laws import Columns, draw_columns, laws
from support.surrogate_tables import compute_tail_sums

COUNT = 40_000


def _columns(standard: Array64, mean: Array64, deviation: Array64, group: Array64 | None = None) -> Columns:
    """Make columns with nearly exact sums of the standardised values ``(n, k)``."""
    size = standard.shape[1]
    sums = compute_tail_sums(standard) * np.array([2.5**2, 5**2, 2.5 * 2])[:, None] / len(standard)
    sums[2] = np.clip(standard, -2.5, 2.5).mean(axis=0)
    return Columns(
        mean,
        deviation,
        error=1e-4 * deviation**2,
        least=np.full(size, -1.0),
        most=np.ones(size),
        group=np.full(size, -1) if group is None else group.astype(np.int64),
        tails=sums,
        tails_noise=np.full(3, 1e-3),
    )


def _standardise(values: Array64) -> Array64:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def test_draws_are_standardised() -> None:
    rng = np.random.default_rng(0)
    standard = _standardise(np.column_stack([rng.standard_normal(COUNT), rng.random(COUNT) < 0.01]))
    columns = _columns(standard, np.array([0.0, -0.9]), np.array([0.1, 0.09]))
    draws = draw_columns(rng, columns, 4000)
    assert draws.shape == (4000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(draws.std(axis=0), 1, atol=1e-3)


def test_normal_column_is_drawn_as_normal_and_rare_one_as_two_valued() -> None:
    """With little noise the posterior is at the right law; fourth moments distinguish them."""
    rng = np.random.default_rng(1)
    rare = (rng.random(COUNT) < 0.02).astype(float)
    standard = _standardise(np.column_stack([rng.standard_normal(COUNT), rare]))
    share = rare.mean()
    mean = np.array([0.0, 2 * share - 1])
    deviation = np.array([0.2, 2 * np.sqrt(share * (1 - share))])
    draws = draw_columns(rng, _columns(standard, mean, deviation), 8000)
    fourth = (draws**4).mean(axis=0)
    assert fourth[0] == pytest.approx(3, abs=0.5)
    assert fourth[1] == pytest.approx(1 / share, rel=0.4)
    assert np.mean(draws[:, 1] > 3) == pytest.approx(share, rel=0.3)
    assert np.mean(np.abs(draws[:, 0]) > 4) < 0.003


def test_laws_have_mean_zero_and_variance_one() -> None:
    """Each law of the grid: rows far away and the rest together, where the rest has a variance."""
    grid = laws()
    assert grid.mass.sum() == pytest.approx(1)
    mean = grid.share * grid.side * grid.distance + (1 - grid.share) * grid.body
    square = grid.share * grid.distance**2 + (1 - grid.share) * (grid.body**2 + grid.spread**2)
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(square[grid.spread > 1e-6], 1, atol=1e-9)
    np.testing.assert_allclose(square, 1, atol=0.06)


def test_indicators_of_one_category_exclude_each_other() -> None:
    shares = np.array([0.5, 0.2, 0.05])
    deviation = np.sqrt(shares * (1 - shares))
    columns = Columns(shares, deviation, np.full(3, 1e-6), np.zeros(3), np.ones(3), np.zeros(3, dtype=np.int64))
    draws = draw_columns(np.random.default_rng(2), columns, 4000) * deviation
    levels = draws - draws.min(axis=0) > 0.5
    assert levels.sum(axis=1).max() == 1
    np.testing.assert_allclose(levels.mean(axis=0), shares, atol=1e-3)


@pytest.mark.parametrize("share", [0.001, 0.3, 0.98])
def test_binary_column_has_its_two_values(share: float) -> None:
    mean, deviation = np.array([2 * share - 1]), np.array([2 * np.sqrt(share * (1 - share))])
    columns = Columns(mean, deviation, np.ones(1), -np.ones(1), np.ones(1), np.zeros(1, dtype=np.int64))
    draws = mean + deviation * draw_columns(np.random.default_rng(3), columns, 4000)
    np.testing.assert_allclose(np.unique(draws.round(9)), [-1, 1], atol=2e-3)
    assert np.mean(draws > 0) == pytest.approx(share, abs=1e-3)
