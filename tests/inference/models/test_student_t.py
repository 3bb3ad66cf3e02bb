"""Student-t regression: its likelihood and means by SciPy, its bounds, and the search for a mode."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import t

from app.inference.core.priors import NormalPrior
from app.inference.models.student_t import StudentTRegression, StudentTRegressionOfUnknownScale
from app.inference.models.student_t_scores import LEAST_CUT, MOST_CUT, compute_mean
from app.inference.post.laplace import fit_laplace
from support.underflow import raise_underflow

DEGREES = pytest.mark.parametrize("nu", [1.0, 1.5, 4.0, 30.0, 100.0])
TINY = np.finfo(np.float32).tiny


@DEGREES
def test_the_log_likelihood_is_scipys_up_to_a_constant(nu: float) -> None:
    rng = np.random.default_rng(0)
    x, y = np.column_stack((rng.uniform(-1, 1, 9), np.ones(9))), rng.uniform(-3, 3, 9)
    theta = rng.standard_normal((5, 3))
    known, unknown = StudentTRegression(2, 0.3, nu), StudentTRegressionOfUnknownScale(2, 0.25, nu)
    for model, sigma in ((known, np.full(5, 0.3)), (unknown, 0.25 * np.exp(theta[:, 2]))):
        found = model.log_likelihood(model.fold(x, y), theta[:, : model.dimension])
        exact = t.logpdf(y[:, None], nu, loc=x @ theta[:, :2].T, scale=sigma)
        difference = found - exact
        np.testing.assert_allclose(difference, difference[0, 0], atol=1e-12)


@DEGREES
def test_the_mean_of_clipped_squares_is_that_by_quadrature(nu: float) -> None:
    for cut in (LEAST_CUT, 1.3, 2.0, 3.7, 6.0, MOST_CUT):
        inside, _ = quad(lambda e: (nu + 1) * e**2 / (nu + e**2) * t.pdf(e, nu), 0, cut, epsabs=1e-12)
        exact = 2 * inside + 2 * (nu + 1) * cut**2 / (nu + cut**2) * t.sf(cut, nu)
        assert compute_mean(cut, nu) == pytest.approx(exact, abs=1e-9)


@DEGREES
@pytest.mark.parametrize("clip", [0.02, 0.4, 2.0, 50.0])
def test_no_target_exceeds_the_bound(nu: float, clip: float) -> None:
    """W5: residuals from 0 to 1e15 scales, densely where the score is longest."""
    rng = np.random.default_rng(1)
    e = np.concatenate((np.linspace(0, 12, 4001), np.geomspace(1e-12, 1e15, 2001)))
    y = np.concatenate((e, -e)) / 4
    x = np.tile([0.3, -0.8, 1.0], (len(y), 1))
    for model in (StudentTRegression(3, 0.25, nu), StudentTRegressionOfUnknownScale(3, 0.25, nu)):
        rows = model.fold(x, y).astype(np.float32)
        transform = rng.standard_normal((model.dimension, model.dimension))
        scores = model.bounded_scores(rows, np.zeros(model.dimension), transform, clip)
        lengths = np.linalg.norm(scores.astype(np.float64), axis=1)
        assert lengths.max() <= clip
        assert lengths.max() > 0.4 * min(
            clip, np.linalg.norm(model.scores(rows, np.zeros(model.dimension)), axis=1).max()
        )


@DEGREES
@pytest.mark.parametrize("cut", [0.5, 20.0, 3e3, 1e30])
def test_no_target_exceeds_the_bound_with_a_wider_scale(nu: float, cut: float) -> None:
    """W5, as without one: residuals from 0 to 1e15 scales."""
    e = np.concatenate((np.linspace(0, 12, 4001), np.geomspace(1e-12, 1e15, 2001)))
    x, transform = np.tile([0.3, -0.8, 1.0], (2 * len(e), 1)), np.random.default_rng(1).standard_normal((3, 3))
    model, theta = StudentTRegression(3, 0.25, nu), np.zeros(3)
    rows = model.fold(x, np.concatenate((e, -e)) / 4).astype(np.float32)
    for clip in (0.02, 50.0):
        lengths = np.linalg.norm(model.cut_scores(rows, theta, transform, clip, cut).astype(np.float64), axis=1)
        assert lengths.max() <= clip
        assert lengths.max() > 0.4 * min(clip, np.linalg.norm(model.scores(rows, theta), axis=1).max())


@DEGREES
def test_scores_of_a_wider_scale_grow_up_to_the_cut(nu: float) -> None:
    """Below the first cut, they are the scores of the model."""
    model, e = StudentTRegression(1, 1.0, nu), np.linspace(-60, 60, 2401)
    rows, own = model.fold(np.ones((len(e), 1)), e).astype(np.float32), (nu + 1) * e / (nu + e**2)
    for cut in (0.1, 1.0, 15.0, 40.0):
        found = model.cut_scores(rows, np.zeros(1), np.eye(1), 1e6, cut)[:, 0]
        assert abs(e[int(np.argmax(found))]) == pytest.approx(max(cut, np.sqrt(nu)), abs=0.05)
        np.testing.assert_allclose(found, -found[::-1], rtol=1e-5)
        if cut <= np.sqrt(nu):
            np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-12)


def test_scale_score_needs_no_coefficients() -> None:
    """The metric may have a coordinate in which the coefficients have no part."""
    model = StudentTRegressionOfUnknownScale(2, 0.25, 4.0)
    rows = model.fold(np.ones((3, 2)), np.array([0.0, 0.2, 2.0])).astype(np.float32)
    scores = model.bounded_scores(rows, np.zeros(3), np.array([[0.0, 0.0, 1.0]]), 100.0)
    np.testing.assert_allclose(scores[:, 0], model.scores(rows, np.zeros(3))[:, 2], rtol=1e-2)


@DEGREES
def test_no_residual_makes_a_subnormal_number(nu: float) -> None:
    """W14: for residuals from 1e-16 scales, which the grid of targets allows, to 1e10."""
    y = np.geomspace(1e-16, 1e10, 10_001) / 4
    model = StudentTRegressionOfUnknownScale(2, 0.25, nu)
    rows = model.fold(np.ones((len(y), 2)), y).astype(np.float32)
    known = StudentTRegression(2, 0.25, nu)
    for cut in (1.0, 1e4, 1e30):
        raise_underflow(known.cut_scores, rows, np.zeros(2), np.eye(2), 1.0, cut)
    raise_underflow(model.scores, rows, np.zeros(3))
    for transform in (np.eye(3), 1e-3 * np.eye(3)):
        raise_underflow(model.bounded_scores, rows, np.zeros(3), transform, 1.0)
    raise_underflow(model.log_likelihood, rows, np.zeros((1, 3), dtype=np.float32))


def _search(seed: int, *, unknown: bool) -> tuple[float, NDArray[Any]]:
    """Search a mode from far away, with a third of outliers.

    Returns twice the nats to the mode, and the eigenvalues of the information there.
    """
    rng = np.random.default_rng(seed)
    nu = float(rng.choice([1.0, 2.0, 4.0, 10.0]))
    model = StudentTRegressionOfUnknownScale(3, 0.25, nu) if unknown else StudentTRegression(3, 0.1, nu)
    x, theta = np.column_stack((rng.uniform(-1, 1, (60, 2)), np.ones(60))), 0.5 * rng.standard_normal(model.dimension)
    y = np.where(rng.random(60) < 1 / 3, rng.uniform(-1, 1, 60), model.sample_targets(rng, x, theta))
    rows, weights, prior = model.fold(x, y), rng.uniform(0, 100, 60), NormalPrior(np.ones(model.dimension))
    mode = fit_laplace(model, rows, weights, prior, 3 * rng.standard_normal(model.dimension), tolerance=1e-16).mean
    found = model.expand(rows, weights, mode)
    information = found.information + prior.precision(mode)
    gradient = found.gradient + prior.gradient(mode)
    return float(gradient @ np.linalg.solve(information, gradient)), np.linalg.eigvalsh(information)


@pytest.mark.parametrize("unknown", [False, True])
def test_the_search_for_a_mode_ends_at_one_from_far_away(unknown: bool) -> None:
    """Where it starts, the information is indefinite."""
    for seed in range(60):
        distance, eigenvalues = _search(seed, unknown=unknown)
        assert eigenvalues[0] > 0
        assert abs(distance) < 1e-8


@pytest.mark.parametrize("unknown", [False, True])
def test_scoring_matrix_is_never_indefinite(unknown: bool) -> None:
    rng = np.random.default_rng(4)
    model = StudentTRegressionOfUnknownScale(3, 0.25, 4.0) if unknown else StudentTRegression(3, 0.1, 4.0)
    indefinite = 0
    for scale in (0.1, 1.0, 10.0):
        rows = rng.standard_normal((20, model.row_width))
        rows[:, 2] = 1
        found = model.expand(rows, np.ones(20), scale * rng.standard_normal(model.dimension))
        assert found.scoring is not None
        assert np.linalg.eigvalsh(found.scoring)[0] >= 0
        indefinite += np.linalg.eigvalsh(found.information)[0] < 0
    assert indefinite


def test_outliers_change_the_mode_little() -> None:
    """A tenth of the rows lie at the upper bound; least squares moves more than ten times as far."""
    rng = np.random.default_rng(5)
    x = np.column_stack((rng.uniform(-1, 1, 400), np.ones(400)))
    y = x @ [0.4, -0.3] + 0.05 * rng.standard_normal(400)
    spoilt = np.where(np.arange(400) % 10 == 0, 1.0, y)
    model, prior = StudentTRegression(2, 0.05, 4.0), NormalPrior(np.ones(2))
    modes = [fit_laplace(model, model.fold(x, each), np.ones(400), prior, np.zeros(2)).mean for each in (y, spoilt)]
    squares = [np.linalg.lstsq(x, each)[0] for each in (y, spoilt)]
    assert np.linalg.norm(modes[1] - modes[0]) < 0.1 * np.linalg.norm(squares[1] - squares[0])
