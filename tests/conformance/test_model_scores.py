"""Every model's scores, bounded or not, and its information: by enumeration of the targets, and on wild rows."""

import numpy as np
import pytest

from tests.conformance.models import ModelCase

TINY = np.finfo(np.float32).tiny
CLIPS = (0.03, 0.5, 4.0, 300.0)


def test_scores_add_up_to_the_gradient(case: ModelCase) -> None:
    rng, model = np.random.default_rng(8), case.model()
    rows, theta = case.rows(rng), case.theta(rng)
    found = model.scores(rows.astype(np.float32), theta)
    assert found.dtype == np.float32
    gradients = [model.expand(row[None], np.ones(1), theta).gradient for row in rows]
    np.testing.assert_allclose(found, gradients, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("clip", CLIPS)
def test_bounded_scores_are_bounded_whatever_the_row(case: ModelCase, clip: float) -> None:
    """W14: no value raises or warns, breaks the bound, or makes a number that takes longer."""
    rng, model = np.random.default_rng(9), case.model()
    wild = rng.choice([0.0, 1.0, -1.0, 0.5, 1e-6, 1e3, -1e9, 1e30, np.inf, -np.inf, np.nan], (4000, model.row_width))
    tame = case.rows(rng, 400)
    rows = np.concatenate((wild, tame)).astype(np.float32)
    for theta in (case.theta(rng), 60 * case.theta(rng)):
        found = model.bounded_scores(rows, theta, case.transform(rng), clip)
        assert found.shape == (len(rows), model.dimension)
        assert found.dtype == np.float32
        assert np.linalg.norm(found.astype(np.float64), axis=1).max() <= clip
        assert not np.any(found[~np.isfinite(rows).all(axis=1)])
        assert model.scores(rows, theta).shape == found.shape
        assert model.information_factors(rows, theta).shape[2] == model.dimension
        assert model.log_likelihood(rows, theta[None].astype(np.float32)).shape == (len(rows), 1)


def test_no_tame_row_reaches_a_subnormal_number(case: ModelCase) -> None:
    """W14: subnormal numbers take longer, so none comes out, however far activations are."""
    rng, model = np.random.default_rng(10), case.model()
    rows = case.rows(rng, 2000).astype(np.float32)
    for scale in (1, 10, 100, 1000):
        theta = scale * case.theta(rng)
        for found in (
            model.scores(rows, theta),
            model.bounded_scores(rows, theta, np.eye(model.dimension), 1.0),
            model.information_factors(rows, theta),
        ):
            magnitude = np.abs(found[found != 0])
            assert magnitude.size
            assert magnitude.min() >= TINY


@pytest.mark.parametrize("clip", CLIPS)
def test_bounded_scores_are_conditionally_unbiased(case: ModelCase, clip: float) -> None:
    """Under the model at ``theta``, the mean given the design row is zero: by enumeration of the targets."""
    rng, model = np.random.default_rng(11), case.model()
    x, theta, transform = case.x(rng), case.theta(rng), case.transform(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    flat = rows.reshape(-1, rows.shape[-1])
    found = model.bounded_scores(flat, theta, transform, clip).reshape(*rows.shape[:2], -1)
    lengths = np.sqrt(np.einsum("nk,nkd->n", probabilities, found.astype(np.float64) ** 2))
    mean = np.einsum("nk,nkd->nd", probabilities, found)
    assert np.all(np.linalg.norm(mean, axis=1) < 2e-5 * lengths)


def test_bounded_scores_are_scores_where_nothing_is_cut(case: ModelCase) -> None:
    rng, model = np.random.default_rng(12), case.model()
    rows, theta, transform = case.rows(rng).astype(np.float32), case.theta(rng), case.transform(rng)
    loose = model.bounded_scores(rows, theta, transform, 1e6)
    np.testing.assert_allclose(loose, model.scores(rows, theta) @ transform.T, rtol=1e-3, atol=1e-4)


def test_a_usual_bound_keeps_most_of_the_information(case: ModelCase) -> None:
    """With C the root mean square of scores, the bounded ones follow more than half of every score's length."""
    rng, model = np.random.default_rng(13), case.model()
    x, theta = case.x(rng), case.theta(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    flat, identity = rows.reshape(-1, rows.shape[-1]), np.eye(model.dimension)
    scores = model.scores(flat, theta).reshape(*rows.shape[:2], -1)
    squares = np.einsum("nk,nkd,nkd->", probabilities, scores, scores) / len(x)
    bounded = model.bounded_scores(flat, theta, identity, float(np.sqrt(squares))).reshape(scores.shape)
    assert np.einsum("nk,nkd,nkd->", probabilities, scores, bounded) / len(x) > 0.5 * squares


def test_information_factors_are_the_expected_information(case: ModelCase) -> None:
    rng, model = np.random.default_rng(14), case.model()
    x, theta = case.x(rng), case.theta(rng)
    rows, probabilities = case.all_outcomes(x, theta)
    scores = model.scores(rows.reshape(-1, rows.shape[-1]), theta).astype(np.float64)
    scores = scores.reshape(*rows.shape[:2], -1)
    expected = np.einsum("nk,nkd,nke->nde", probabilities, scores, scores)
    for outcome in (0, -1):  # which target a row has does not matter
        factors = model.information_factors(np.ascontiguousarray(rows[:, outcome]), theta).astype(np.float64)
        found = np.einsum("nrd,nre->nde", factors, factors)
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
