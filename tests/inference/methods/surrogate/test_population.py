"""What is made of a noised histogram, and how a population follows other moments."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate.population import (
    Lengths,
    Population,
    clip_of,
    mean_power,
    root_mean_square,
    scale_of,
)
from app.inference.methods.surrogate.tails import Tails
from app.inference.private_zone.queries.lengths import BINS

RNG = np.random.default_rng(4)
X = np.column_stack((RNG.normal((0.5, -0.2, 0.0), (0.3, 0.1, 0.5), (400, 3)), np.ones(400)))


def test_lengths_in_bins_give_their_root_mean_square() -> None:
    """Within the width of a bin, which is sqrt(2) either way."""
    squared = (X**2).sum(axis=1)
    counts = np.bincount(np.floor(np.log2(8 / squared)).astype(int), minlength=BINS).astype(np.float64)
    found = root_mean_square(Lengths(counts, 8.0, 1.0))
    assert found == pytest.approx(np.sqrt(squared.mean()), rel=0.19)
    assert mean_power(Lengths(counts, 8.0, 1.0), 2) == pytest.approx(np.mean(squared**2), rel=0.4)
    assert root_mean_square(Lengths(counts + RNG.normal(0, 1, BINS), 8.0, 1.0)) == pytest.approx(found, rel=0.1)


def test_a_histogram_of_noise_alone_says_the_largest() -> None:
    assert root_mean_square(Lengths(np.ones(BINS), 9.0, 1.0)) == 3.0


def test_scales_and_clips_have_public_ends() -> None:
    assert scale_of(3.0, 9) == 2.0
    assert 0 < scale_of(0.0, 5) < scale_of(1e300, 5) < np.inf
    assert clip_of(0.0) == 2.0
    assert clip_of(7.0) == 14.0


def test_rows_have_exactly_the_populations_moments() -> None:
    law = Population(10.0, X.mean(axis=0), np.cov(X.T, bias=True))
    rows = law.rows(RNG, 50)
    np.testing.assert_allclose(rows.mean(axis=0), law.mean, atol=1e-12)
    np.testing.assert_allclose(rows.T @ rows / 50, law.second_moments, atol=1e-12)


def test_spread_is_the_root_mean_square_of_predictors() -> None:
    law, step = Population(10.0, X.mean(axis=0), np.cov(X.T, bias=True)), RNG.normal(size=8)
    predictors = X @ step.reshape(2, 4).T
    assert law.spread(step, 2) == pytest.approx(np.sqrt(np.mean(predictors**2)))


@pytest.mark.parametrize("level", [1.0, 1.3])
def test_second_moments_are_taken_over_with_their_level(level: float) -> None:
    law = Population(10.0, np.array([0, 0, 0, 1.0]), np.zeros((4, 4)))
    found = law.with_second_moments(level * X.T @ X / len(X))
    assert found.count == pytest.approx(10 * level)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(X.T, bias=True), atol=1e-12)


def test_columns_reach_as_far_as_their_further_bound() -> None:
    law = Population(10.0, np.array([0.3, -0.2, 0.4, 0.9, 1.0]), np.zeros((5, 5)))
    np.testing.assert_array_equal(law.furthest, [-1, 1, -1, -1])
    np.testing.assert_array_equal(replace(law, least=np.array([0.0, -1.0, 0.0, 0.0])).furthest, [1, 1, 1, 0])


def test_rows_of_unseen_levels_are_at_the_further_bound_and_else_at_the_mean() -> None:
    """Behind those of levels that are known, whether or not there are any."""
    law = Population(10.0, np.array([0.3, -0.98, 0.4, 1.0]), np.diag([0.1, 0.04, 0.1, 0.0]))
    assert law.level_rows.shape == (0, 4)
    unseen = np.array([True, False, True])
    rows = [[-1, -0.98, 0.4, 1], [0.3, -0.98, -1, 1]]
    np.testing.assert_array_equal(replace(law, unseen=unseen).level_rows, rows)
    share = np.array([0.0, 1.0, 0.0])
    tails = Tails(share, np.array([5.0, 9.9, 5.0]), share, np.zeros((1, 3)), clear=False)
    found = replace(law, unseen=unseen, tails=tails).level_rows
    np.testing.assert_allclose(found, [[0.3, 1, 0.4, 1], *rows])


def test_rarer_values_have_an_intercept_and_no_tails_none() -> None:
    law = Population(10.0, np.array([0.3, -0.9, 1.0]), np.diag([0.04, 0.01, 0.0]), least=np.array([0.0, -1.0]))
    assert law.rarer_values[0].shape == (0, 3)
    tails = Tails(np.array([1.0, 0.4]), np.array([3.0, 9.0]), np.array([-1.0, 1.0]), np.zeros((1, 2)), clear=True)
    rows, known = replace(law, tails=tails).rarer_values
    np.testing.assert_allclose(rows, [[0.0, -0.9, 1.0]])
    assert known.all()
    rows, known = replace(law, tails=replace(tails, perhaps=np.array([0.0, 4.0]))).rarer_values
    np.testing.assert_allclose(rows, [[0.0, -0.9, 1.0], [0.3, -0.5, 1.0]])
    np.testing.assert_array_equal(known, [True, False])
