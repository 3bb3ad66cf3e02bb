"""The page about predictions: areas by brute force, splits, and the units of objective perturbation."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from app.inference.post.laplace import Laplace
from benchmarks import auc
from benchmarks.auc import DEFAULT, EXACT, PERTURBED, PURE, VIPS, Line, Split
from benchmarks.cases import make_design_rows, make_logistic
from benchmarks.designs import Rows
from benchmarks.peers.objective_perturbation import minimise
from benchmarks.peers.problem import Problem


def test_margins_have_the_order_of_predictive_probabilities() -> None:
    """Compare with means over draws of the belief; the mean alone gives another order."""
    rng = np.random.default_rng(1)
    belief = Laplace(np.array([1.0, 0.5]), np.diag([1 / 3.0, 10.0]))
    x = np.array([[3.0, 0.0], [0.0, 3.0], [-2.0, 1.0], [1.0, 1.0]])
    draws = belief.mean + rng.standard_normal((200_000, 2)) * [3.0, 0.1]
    probabilities = expit(draws @ x.T).mean(axis=0)
    assert np.argsort(auc.rank_rows(x, belief)).tolist() == np.argsort(probabilities).tolist()
    assert np.argsort(x @ belief.mean).tolist() != np.argsort(probabilities).tolist()


def test_training_and_held_out_rows_are_disjoint() -> None:
    for train, test in auc._draw_places(30_162):
        assert (len(train), len(test)) == (auc.TRAINING, auc.HELD_OUT)
        assert not set(train) & set(test)


def test_objective_perturbation_without_noise_is_the_mode() -> None:
    """In its units and in the design's, coefficients differ by the unit alone."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((400, 3))
    rows = Rows(x, (rng.random(400) < expit(2 * x[:, 0] - 1)).astype(np.float64))
    case = make_logistic("small", rows, bound=auc.BOUND)
    split = Split(case, *make_design_rows(case), np.append(np.full(3, auc.BOUND), 1.0))
    problem = auc._make_problem(split)
    theta = minimise(problem.x, problem.y, np.ones(400), problem.precision, np.zeros(4))
    assert case.exact is not None
    np.testing.assert_allclose(split.unit * theta, case.exact.mean, rtol=1e-4)
    np.testing.assert_allclose(problem.norm, np.sqrt((x**2).sum(axis=1).max() + 1), rtol=1e-6)


def test_pure_noise_of_objective_perturbation_has_its_density() -> None:
    """One row of weight zero leaves the ridge alone: the minimiser is the linear term over the ridge."""
    problem = Problem(np.zeros((1, 3)), np.ones(1), 2.0, 1.0, 0.0)
    settings, rng = {"clip": 0.5, "ridge": 4.0}, np.random.default_rng(3)
    left = 1.5 - math.log1p(1 / 4 / 5)
    lengths = [5 * np.linalg.norm(auc.perturb_purely(problem, 1.5, settings, rng)) for _ in range(400)]
    assert stats.kstest(lengths, stats.gamma(3, scale=1 / left).cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="ridge"):
        auc.perturb_purely(problem, 0.01, settings, rng)


def test_the_page_has_means_over_splits_and_counts_of_wins(tmp_path: Path) -> None:
    lines = []
    for split, epsilon in product(range(2), (*auc.EPSILONS, math.inf)):
        for method, area in ((VIPS, 0.8), (DEFAULT, 0.85), (PERTURBED, 0.7 if epsilon < 2 else 0.82), (PURE, 0.6)):
            if math.isfinite(epsilon) or method in {VIPS, DEFAULT}:
                lines.append(Line("table", 11, method, epsilon, split, area + 0.02 * split))
        if math.isinf(epsilon):
            lines.append(Line("table", 11, EXACT, epsilon, split, 0.9))
    page = auc.render_page(lines, {"cores": "2"})
    assert "| vips | 0.810 ± 0.014 |" in page
    assert "| full posterior | – |" in page
    text = page.replace("\n", " ")
    assert "It is above that with δ = 0.0001 at ε = 0.1, 0.2, 0.5, 1. It" in text
    assert "above the default method at no ε." in text
    assert "0.090 below the full posterior, and the default method 0.040" in text
    auc.draw(lines, tmp_path / "auc.png")
    assert (tmp_path / "auc.png").stat().st_size > 1000
