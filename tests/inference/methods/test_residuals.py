"""Covariances with the residual: exact against finite differences, Monte Carlo against exact."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.priors import HierarchicalPrior
from app.inference.core.problems import Problem, make_problem
from app.inference.methods.psvi.residuals import Points, Residuals
from app.inference.methods.psvi.residuals.choice import make_residuals
from app.inference.methods.psvi.residuals.gaussian_mean import GaussianMeanResiduals
from app.inference.methods.psvi.residuals.linear_regression import LinearResiduals
from app.inference.methods.psvi.residuals.monte_carlo import MonteCarloResiduals
from app.inference.methods.public_table import Minibatches, PublicTable
from support.divergence import compute_divergence
from tests.inference.populations import DECLARED, SPECS, population, posterior

LINEAR, GAUSSIAN = SPECS[2], SPECS[6]
EXACT = (
    replace(LINEAR, prior=PriorSpec(0.3, mean={"age": -0.9, "intercept": 0.5})),
    replace(GAUSSIAN, noise_scale=0.7, prior=PriorSpec(0.4, {"age": 2.0}, mean={"hours": 0.6})),
)


def _problem(spec: ModelSpec) -> tuple[Problem, PublicTable, Residuals]:
    problem = make_problem(spec, DECLARED)
    table = PublicTable(population(), problem.design)
    return problem, table, make_residuals(problem, table, np.random.default_rng(0), draws=100, minibatch=100)


def _points(table: PublicTable, count: int = 6) -> Points:
    rng = np.random.default_rng(4)
    x, y = table.read(rng.choice(table.count, size=count, replace=False))
    return Points(x.astype(float), y.astype(float), rng.uniform(0.2, 2, count) * table.count / count)


def _slope(at: Array64, value: object, step: float = 1e-5) -> Array64:
    """Compute central differences of ``value`` in every entry of ``at``."""
    assert callable(value)
    found = np.empty_like(at)
    for index in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[index] += sign * step * max(1.0, abs(float(at[index])))
            ends.append((value(moved), moved[index]))
        found[index] = (ends[0][0] - ends[1][0]) / (ends[0][1] - ends[1][1])
    return found


@pytest.mark.parametrize("spec", EXACT, ids=lambda spec: spec.family)
def test_exact_gradients_are_the_slopes_of_the_kl(spec: ModelSpec) -> None:
    """Eq. 5 of the paper, against the closed form of the KL between two normals."""
    problem, table, residuals = _problem(spec)
    x, y = (values.astype(float) for values in table.read(np.arange(table.count)))
    exact, points = posterior(problem, x, y, np.ones(table.count)), _points(table)

    def kl(u: Array64, targets: Array64, weights: Array64) -> float:
        return compute_divergence(posterior(problem, u, targets, weights), exact)

    residual = residuals.at(points)
    move_u, move_y = residual.moves(points.u, points.y)
    by_weight = _slope(points.weights, lambda weights: kl(points.u, points.y, weights))
    by_u = _slope(points.u, lambda u: kl(u, points.y, points.weights))
    np.testing.assert_allclose(-residual.own, by_weight, rtol=1e-4, atol=1e-6 * np.abs(by_weight).max())
    by_moves = -points.weights[:, None] * move_u
    np.testing.assert_allclose(by_moves, by_u, rtol=1e-4, atol=1e-6 * np.abs(by_u).max())
    if spec.target is None:
        assert move_y is None
    else:
        by_y = _slope(points.y, lambda targets: kl(points.u, targets, points.weights))
        assert move_y is not None
        np.testing.assert_allclose(-points.weights * move_y, by_y, rtol=1e-4, atol=1e-6 * np.abs(by_y).max())


@pytest.mark.parametrize("spec", EXACT, ids=lambda spec: spec.family)
@pytest.mark.long
def test_monte_carlo_covariances_match_the_exact_ones(spec: ModelSpec) -> None:
    """With the whole table and 20 times 2,000 draws, within seven standard errors."""
    problem, table, residuals = _problem(spec)
    rng, points = np.random.default_rng(5), _points(table)
    batches = Minibatches(table, table.count, rng)
    sampled = MonteCarloResiduals(problem.model, problem.prior, batches, count=table.count, draws=2_000, rng=rng)
    x, y = (values.astype(float) for values in table.read(np.arange(8)))
    exact, drawn = residuals.at(points), []
    for _ in range(20):
        found = sampled.at(points)
        drawn.append((found.own, found.correlation(x, y), found.moves(points.u, points.y)[0]))
    truths = (exact.own, exact.correlation(x, y), exact.moves(points.u, points.y)[0])
    for values, truth in zip(zip(*drawn, strict=True), truths, strict=True):
        error = np.std(values, axis=0, ddof=1) / np.sqrt(20)
        assert np.all(np.abs(np.mean(values, axis=0) - truth) < 7 * error)
        assert np.all(error < 0.1 * np.abs(truth).max())


def test_minibatches_are_unbiased_for_the_table() -> None:
    """The mean over many minibatches is the covariance with all rows."""
    problem, table, residuals = _problem(LINEAR)
    rng, points = np.random.default_rng(6), _points(table)
    sampled = MonteCarloResiduals(
        problem.model, problem.prior, Minibatches(table, 50, rng), count=table.count, draws=400, rng=rng
    )
    owns = np.array([sampled.at(points).own for _ in range(400)])
    error = owns.std(axis=0, ddof=1) / np.sqrt(400)
    assert np.all(np.abs(owns.mean(axis=0) - residuals.at(points).own) < 7 * error)
    assert np.all(error < 0.2 * np.abs(owns.mean(axis=0)).max())


def test_exact_residuals_are_used_for_their_models_only() -> None:
    assert isinstance(_problem(GAUSSIAN)[2], GaussianMeanResiduals)
    assert isinstance(_problem(LINEAR)[2], LinearResiduals)
    unknown_noise = replace(LINEAR, noise_scale=None)
    hierarchical = replace(GAUSSIAN, prior=PriorSpec(degrees_of_freedom=3.0))
    assert isinstance(_problem(hierarchical)[0].prior, HierarchicalPrior)
    for spec in (SPECS[0], unknown_noise, hierarchical):
        assert isinstance(_problem(spec)[2], MonteCarloResiduals)
