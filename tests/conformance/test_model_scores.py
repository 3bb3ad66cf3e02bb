"""Every model's scores and information, by enumeration of targets and on extreme rows."""

import numpy as np
import pytest

from tests.conformance.models import ModelCase

TINY = np.finfo(np.float32).tiny
CLIPS = (0.03, 0.5, 4.0, 300.0)


def test_scores_add_up_to_the_gradient(case: ModelCase) -> None:
    rng, model = np.random.default_rng(8), case.model()
    rows, theta = case.rows(rng), case.theta(rng)
    scores = model.scores(rows.astype(np.float32), theta)
    assert scores.dtype == np.float32
    gradients = [model.expand(row[None], np.ones(1), theta).gradient for row in rows]
    np.testing.assert_allclose(scores, gradients, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("clip", CLIPS)
def test_bounded_scores_are_bounded_for_every_row(case: ModelCase, clip: float) -> None:
    """W14: no row raises, warns, breaks the bound, or makes a subnormal number."""
    rng, model = np.random.default_rng(9), case.model()
    wild = rng.choice([0.0, 1.0, -1.0, 0.5, 1e-6, 1e3, -1e9, 1e30, np.inf, -np.inf, np.nan], (4000, model.row_width))
    tame = case.rows(rng, 400)
    rows = np.concatenate((wild, tame)).astype(np.float32)
    for theta in (case.theta(rng), 60 * case.theta(rng)):
        scores = model.bounded_scores(rows, theta, case.transform(rng), clip)
        assert scores.shape == (len(rows), model.dimension)
        assert scores.dtype == np.float32
        assert np.linalg.norm(scores.astype(np.float64), axis=1).max() <= clip
        assert not np.any(scores[~np.isfinite(rows).all(axis=1)])
        assert model.scores(rows, theta).shape == scores.shape
        assert model.information_factors(rows, theta).shape[2] == model.dimension
        assert model.log_likelihood(rows, theta[None].astype(np.float32)).shape == (len(rows), 1)


def test_no_ordinary_row_makes_a_subnormal_number(case: ModelCase) -> None:
    """W14: subnormal numbers take longer, so none may result, even for large activations."""
    rng, model = np.random.default_rng(10), case.model()
    rows = case.rows(rng, 2000).astype(np.float32)
    for scale in (1, 10, 100, 1000):
        theta = scale * case.theta(rng)
        for scores in (
            model.scores(rows, theta),
            model.bounded_scores(rows, theta, np.eye(model.dimension), 1.0),
            model.information_factors(rows, theta),
        ):
            magnitude = np.abs(scores[scores != 0])
            assert magnitude.size
            assert magnitude.min() >= TINY


@pytest.mark.parametrize("clip", CLIPS)
def test_bounded_scores_are_conditionally_unbiased(case: ModelCase, clip: float) -> None:
    """W16: under the model at ``theta``, the mean given the design row is zero.

    It is computed by enumeration of the targets.
    """
    rng, model = np.random.default_rng(11), case.model()
    x, theta, transform = case.x(rng), case.theta(rng), case.transform(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    flat = rows.reshape(-1, rows.shape[-1])
    scores = model.bounded_scores(flat, theta, transform, clip).reshape(*rows.shape[:2], -1)
    lengths = np.sqrt(np.einsum("nk,nkd->n", probabilities, scores.astype(np.float64) ** 2))
    mean = np.einsum("nk,nkd->nd", probabilities, scores)
    assert np.all(np.linalg.norm(mean, axis=1) < 2e-5 * lengths)


def test_bounded_scores_equal_scores_under_a_large_bound(case: ModelCase) -> None:
    rng, model = np.random.default_rng(12), case.model()
    rows, theta, transform = case.rows(rng).astype(np.float32), case.theta(rng), case.transform(rng)
    loose = model.bounded_scores(rows, theta, transform, 1e6)
    np.testing.assert_allclose(loose, model.scores(rows, theta) @ transform.T, rtol=1e-3, atol=1e-4)


def test_usual_bound_keeps_most_of_the_information(case: ModelCase) -> None:
    """Bounding keeps most if C is the root mean square of scores.

    It keeps more than half, except under heavy tails. The share is the mean inner product of scores and bounded scores,
    divided by the mean square of scores.
    """
    rng, model = np.random.default_rng(13), case.model()
    x, theta = case.x(rng), case.theta(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    flat, identity = rows.reshape(-1, rows.shape[-1]), np.eye(model.dimension)
    scores = model.scores(flat, theta).reshape(*rows.shape[:2], -1)
    squares = np.einsum("nk,nkd,nkd->", probabilities, scores, scores) / len(x)
    bounded = model.bounded_scores(flat, theta, identity, float(np.sqrt(squares))).reshape(scores.shape)
    assert np.einsum("nk,nkd,nkd->", probabilities, scores, bounded) / len(x) > case.least_kept * squares


def test_information_factors_are_the_expected_information(case: ModelCase) -> None:
    rng, model = np.random.default_rng(14), case.model()
    x, theta = case.x(rng), case.theta(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    scores = model.scores(rows.reshape(-1, rows.shape[-1]), theta).astype(np.float64)
    scores = scores.reshape(*rows.shape[:2], -1)
    expected = np.einsum("nk,nkd,nke->nde", probabilities, scores, scores)
    for outcome in (0, -1):  # the result does not depend on a row's target
        factors = model.information_factors(np.ascontiguousarray(rows[:, outcome]), theta).astype(np.float64)
        information = np.einsum("nrd,nre->nde", factors, factors)
        np.testing.assert_allclose(information, expected, atol=1e-4 * np.abs(expected).max())
