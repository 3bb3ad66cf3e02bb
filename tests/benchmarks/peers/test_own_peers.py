"""The peers of this project: sensitivities by brute force, budgets, and consistency without noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent, PrivacyEvent, SelfComposedEvent
from benchmarks.peers import gradient_descent, newton, objective_perturbation, posterior_sample
from benchmarks.peers.bounded_sums import compute_factors, draw_symmetric, sum_hessians, whiten
from benchmarks.peers.gaussian_privacy import compute_mu
from benchmarks.peers.objective_perturbation import compute_noise, minimise
from benchmarks.peers.problem import Problem, Settings, compute_scores, measure_distance, shrink_rows
from benchmarks.peers.tuning import Release, list_settings
from tests.benchmarks.peers.cases import draw_problem, draw_table

NEWTON = {"steps": 8.0, "hessian": 0.3, "clip": 10.0}
DESCENT = {"steps": 400.0, "rate": 4.0, "clip": 10.0}


class NoRandomness(np.random.Generator):
    """A generator whose normal numbers are zeros."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def standard_normal(self, size: object = None, *_: object, **__: object) -> Array64:  # type: ignore[override]
        return np.zeros(size)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("weigh", [False, True])
def test_bounded_scores_of_any_row_are_within_the_clip(weigh: bool) -> None:
    rng = np.random.default_rng(0)
    z, residual = 3 * rng.standard_normal((5000, 4)), rng.uniform(-1, 1, 5000)
    factors = compute_factors(np.linalg.norm(z, axis=1), residual, 1.3, weigh=weigh)
    lengths = np.abs(factors * residual) * np.linalg.norm(z, axis=1)
    assert lengths.max() <= 1.3 * (1 + 1e-12)
    assert weigh or np.isclose(lengths, 1.3).sum() > 1000


def test_removing_any_row_changes_a_hessian_by_the_limit() -> None:
    rng = np.random.default_rng(1)
    z, variance = 4 * rng.standard_normal((300, 3)), rng.uniform(0.05, 0.25, 300)
    full, changes = sum_hessians(z, variance, np.ones(300), 0.6), []
    for row in range(300):
        rest = np.arange(300) != row
        changes.append(np.linalg.norm(full - sum_hessians(z[rest], variance[rest], np.ones(299), 0.6)))
    assert max(changes) == pytest.approx(0.6)


def test_noise_of_a_symmetric_matrix_is_isotropic_in_its_norm() -> None:
    """There are D (D + 1) / 2 independent coordinates of equal variance."""
    rng = np.random.default_rng(2)
    draws = [draw_symmetric(rng, 4, 2.0) for _ in range(4000)]
    assert np.mean([np.sum(each**2) for each in draws]) == pytest.approx(4.0 * 10, rel=0.03)
    direction = np.ones((4, 4)) / 4  # Frobenius norm 1
    assert np.std([np.sum(each * direction) for each in draws]) == pytest.approx(2.0, rel=0.05)


def test_second_moments_have_the_sensitivity_of_the_longest_row() -> None:
    problem = draw_problem(500)
    squares = np.vecdot(problem.x, problem.x)
    assert squares.max() <= problem.norm**2
    root = whiten(problem, math.inf, np.random.default_rng(0))
    np.testing.assert_allclose(root.T @ problem.x.T @ problem.x @ root / problem.rows, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("hessian", [0.1, 0.4])
def test_the_steps_of_newton_spend_the_whole_budget(hessian: float) -> None:
    parts = newton.split_budget(0.7, {"steps": 5.0, "hessian": hessian})
    assert sum(mu**2 + other**2 for mu, other in parts) == pytest.approx(0.7)
    assert parts[1][0] / parts[0][0] == pytest.approx(math.sqrt(2))


def test_the_steps_of_descent_spend_the_whole_budget() -> None:
    sigma = gradient_descent.compute_noise(0.5, 40, 1.5)
    assert 40 * (1.5 / sigma) ** 2 == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_accountant_prices_all_noise_of_iterations_near_epsilon(epsilon: float) -> None:
    """Whitening, then every step. The accountant asks for a few per cent more than the exact curve."""
    delta, share = 3e-5, 0.2
    budget = compute_mu(epsilon, delta) ** 2
    steps = newton.split_budget((1 - share) * budget, {"steps": 5.0, "hessian": 0.3})
    noise = [1 / math.sqrt(share * budget), *(1 / mu for step in steps for mu in step)]
    sigma = gradient_descent.compute_noise((1 - share) * budget, 40, 1.5) / 1.5
    of_newton: list[PrivacyEvent] = [GaussianEvent(each) for each in noise]
    of_descent: list[PrivacyEvent] = [GaussianEvent(noise[0]), SelfComposedEvent(GaussianEvent(sigma), 40)]
    for events in (of_newton, of_descent):
        assert epsilon < compute_cost(events, delta) < 1.2 * epsilon


@pytest.mark.parametrize("whitening", [0.0, 0.2])
@pytest.mark.parametrize(("release", "settings"), [(newton.release, NEWTON), (gradient_descent.release, DESCENT)])
def test_without_noise_iterations_reach_the_exact_mode(release: Release, settings: Settings, whitening: float) -> None:
    table, problem = draw_table(), draw_problem()
    assert table.case.exact is not None
    belief = release(problem, 1e5, {**settings, "whiten": whitening, "weigh": 0.0}, NoRandomness())
    found = measure_distance(belief, table.case.exact)
    assert found.mean_error < 0.02
    assert found.kl < 0.02


def test_the_perturbed_objective_has_its_minimum_where_stated() -> None:
    problem, rng = draw_problem(), np.random.default_rng(0)
    weights, tilt = rng.uniform(0.5, 1, problem.rows), 30 * rng.standard_normal(4)
    theta = minimise(problem.x, problem.y, weights, 2.0, tilt)
    residual, _ = compute_scores(problem.x, problem.y, theta)
    np.testing.assert_allclose(problem.x.T @ (weights * residual) - 2.0 * theta - tilt, 0, atol=1e-3)


@pytest.mark.parametrize("others", [0, 3])
def test_objective_perturbation_keeps_its_delta_in_one_dimension(others: int) -> None:
    """The densities of both neighbours are integrated; one row is the longest that there may be."""
    epsilon, delta, ridge, length = 1.0, 1e-3, 4.0, 1.5
    sigma = compute_noise(epsilon, delta, length, length**2 / 4, ridge)
    theta = np.linspace(-40, 40, 400_001)

    def density(rows: list[float]) -> Array64:
        p = [1 / (1 + np.exp(-row * theta)) for row in rows]
        slope = ridge * theta + sum((row * (q - 1) for row, q in zip(rows, p, strict=True)), np.zeros_like(theta))
        curve = ridge + sum((row**2 * q * (1 - q) for row, q in zip(rows, p, strict=True)), np.zeros_like(theta))
        return np.asarray(np.exp(-0.5 * (slope / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) * curve)

    near, far = density([0.4] * others + [length]), density([0.4] * others)
    step, grown = theta[1] - theta[0], math.exp(epsilon)
    assert np.sum(near) * step == pytest.approx(1, abs=1e-3)
    spent = [np.sum(np.maximum(one - grown * other, 0)) * step for one, other in ((near, far), (far, near))]
    assert 0.001 * delta < max(spent) <= delta


def test_a_ridge_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="ridge"):
        compute_noise(0.2, 1e-5, 1.0, 0.25, 0.5)


def test_shrunk_rows_have_at_most_the_length() -> None:
    rows = shrink_rows(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), 1.0)
    np.testing.assert_allclose(rows, np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))


@pytest.mark.parametrize("bound", [0.8, 3.0])
def test_one_row_changes_the_sampled_density_by_at_most_epsilon(bound: float) -> None:
    """The tempered, clipped log-likelihood of a row has the range epsilon."""
    problem, epsilon = draw_problem(50), 0.7
    one = replace(problem, x=problem.x[:1], y=problem.y[:1])
    rng, values = np.random.default_rng(0), []
    for theta in 100 * rng.standard_normal((500, 4)):
        prior = -problem.precision / 2 * float(theta @ theta)
        values.append(posterior_sample.Target(one, bound, epsilon / bound).evaluate(theta) - prior)
    assert max(values) <= 0
    assert max(values) - min(values) == pytest.approx(epsilon, abs=1e-6)


def test_samples_of_a_mild_power_have_the_exact_spread() -> None:
    """Unclipped and with power one, the mean squared error in posterior deviations is one."""
    table, problem = draw_table(), draw_problem()
    assert table.case.exact is not None
    errors = [
        measure_distance(posterior_sample.release(problem, 50.0, {"bound": 50.0}, np.random.default_rng(seed)),
                         table.case.exact).mean_error
        for seed in range(60)
    ]  # fmt: skip
    assert np.mean(np.square(errors)) == pytest.approx(1, rel=0.25)


def test_a_point_estimate_is_given_the_exact_covariance() -> None:
    table, problem = draw_table(), draw_problem()
    exact = table.case.exact
    assert exact is not None
    belief = objective_perturbation.release(
        problem, 50.0, {"clip": 1.0, "weigh": 0.0, "ridge": 1.0}, np.random.default_rng(0)
    )
    found = measure_distance(belief, exact)
    assert not found.covers
    assert found.kl == pytest.approx(len(exact.mean) * found.mean_error**2 / 2)


def test_the_ladder_of_every_grid_gives_usable_settings() -> None:
    for grid in (newton.GRID, gradient_descent.GRID, objective_perturbation.GRID, posterior_sample.GRID):
        candidates = list_settings(grid)
        assert len(candidates) == math.prod(map(len, grid.values()))
        assert len({tuple(each.values()) for each in candidates}) == len(candidates)


def test_noise_of_a_peer_falls_with_epsilon() -> None:
    problem: Problem = draw_problem()
    assert compute_mu(3.0, problem.delta) > compute_mu(1.0, problem.delta) > compute_mu(0.2, problem.delta) > 0
