"""Metrics of queries and moments of drawn rows, by their definitions."""

import numpy as np
import pytest
from scipy.linalg import eigh

from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from app.inference.methods.surrogate.information import compute_lewis_metric, compute_squared_lengths
from app.inference.methods.surrogate.moments import leave_reference
from app.inference.methods.surrogate.rows import colour
from support.surrogate_tables import Case, Drawn, build, compute_losses, fit_posterior


def _factors(seed: int) -> Array64:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_t(3, (500, 1, 4)) * np.array([1.0, 2.0, 0.5, 1.0]))


def test_metric_of_power_two_is_the_gram_matrix() -> None:
    """Up to a ridge of three hundredths of the mean eigenvalue; the trace is D."""
    factors = _factors(0)
    flat = factors[:, 0]
    gram = flat.T @ flat / 500
    gram += 0.03 * np.trace(gram) / 4 * np.eye(4)
    np.testing.assert_allclose(compute_lewis_metric(factors, 2.0), 4 * gram / np.trace(gram), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("power", [2.0, 2.6, 3.2])
def test_metric_has_trace_d_and_longer_rows_weigh_more(power: float) -> None:
    """The longest row gets shorter in the metric as the power grows."""
    factors = _factors(1)
    metric = compute_lewis_metric(factors, power)
    assert np.trace(metric) == pytest.approx(4)
    np.testing.assert_allclose(metric, metric.T, atol=1e-12)
    assert np.linalg.eigvalsh(metric)[0] > 0

    def longest(of: Array64) -> float:
        lengths = compute_squared_lengths(factors, of)
        return float(lengths.max() / np.median(lengths))

    if power > 2:
        assert longest(metric) < longest(compute_lewis_metric(factors, 2.0))


@pytest.mark.parametrize("power", [2.0, 3.0, 12.0])
def test_factors_without_information_have_a_metric(power: float) -> None:
    """W14: predictors may be so large that the information of every row is zero in single precision."""
    np.testing.assert_array_equal(compute_lewis_metric(np.zeros((50, 1, 3)), power), np.eye(3))


@pytest.mark.parametrize("power", [2.0, 5.0, 12.0])
def test_an_axis_without_extent_of_draws_has_room(power: float) -> None:
    """Real rows may have some extent there, and a bound must not remove them."""
    factors = _factors(2)
    factors[:, :, 3] = 0
    metric = compute_lewis_metric(factors, power)
    assert metric[3, 3] > 0.02
    assert compute_squared_lengths(np.array([[[0.0, 0.0, 0.0, 1.0]]]), metric)[0] < 50


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_undeclared_rare_levels_are_in_the_information(seed: int) -> None:
    """Two columns with one row in fifty at the other bound: no noise at epsilon 1 may hide them from the belief."""
    case = Case(design="rare", features=2, rows=8000, slots=8000, seed=seed, prior=PriorSpec(10.0))
    points = build(case, case.plan(3.7, 12), Drawn(seed), seed)
    fitted, exact = fit_posterior(case.problem, points.u, points.y, points.weight), case.exact()
    released, full = (belief.factor @ belief.factor.T for belief in (fitted, exact))
    assert eigh(released, full, eigvals_only=True)[0] > 0.2


@pytest.mark.long
@pytest.mark.parametrize("seed", [12, 13])
def test_w14_parameters_far_out_give_points(seed: int) -> None:
    """Noise of many rounds moves the predictors until no row has information."""
    case = Case(features=2, rows=194, slots=194, seed=seed, prior=PriorSpec(1000.0, {}, 3.0))
    points = build(case, case.plan(3000.0, 3, rounds=28), Drawn(seed), seed)
    assert np.all(np.isfinite(points.u))
    assert np.all(np.isfinite(points.weight))


def test_squared_lengths_are_mahalanobis_lengths() -> None:
    factors, metric = _factors(2).reshape(250, 2, 4), np.diag([1.0, 4.0, 9.0, 16.0])
    expected = (np.square(factors) / np.array([1.0, 4.0, 9.0, 16.0])).sum(axis=(1, 2))
    np.testing.assert_allclose(compute_squared_lengths(factors, metric), expected, rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_coloured_draws_have_the_requested_moments(intercept: bool) -> None:
    rng = np.random.default_rng(3)
    standard = rng.exponential(size=(400, 3))
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
    root = rng.standard_normal((3, 3))
    mean, covariance = np.array([0.3, -0.2, 5.0]), root @ root.T + 0.1 * np.eye(3)
    draws = colour(standard, mean, covariance, intercept=intercept)
    assert draws.shape == (400, 3 + intercept)
    np.testing.assert_allclose(draws[:, :3].mean(axis=0), mean, atol=1e-9)
    np.testing.assert_allclose(np.cov(draws[:, :3].T, bias=True), covariance, rtol=1e-6, atol=1e-8)
    if intercept:
        assert np.all(draws[:, -1] == 1)


def test_colour_changes_nothing_if_the_moments_agree() -> None:
    """The optimal transport between equal laws is the identity, so marginal laws stay."""
    rng = np.random.default_rng(4)
    standard = np.sign(rng.standard_normal((300, 2))) + rng.standard_normal((300, 1))
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
    draws = colour(standard, np.zeros(2), standard.T @ standard / 300, intercept=False)
    np.testing.assert_allclose(draws, standard, atol=1e-8)


def test_shares_leave_room_for_the_level_without_an_indicator() -> None:
    """Shares below their error are raised to it; together they are at most 1 less that."""
    np.testing.assert_allclose(leave_reference(np.array([0.2, 0.3]), np.full(2, 0.01)), [0.2, 0.3])
    raised = leave_reference(np.array([-0.1, 0.0, 0.4]), np.array([0.05, 0.02, 0.05]))
    np.testing.assert_allclose(raised, [0.05, 0.02, 0.4])
    full = leave_reference(np.array([0.7, 0.5]), np.array([0.05, 0.01]))
    assert full.sum() == pytest.approx(0.95)
    assert full[0] / full[1] == pytest.approx(1.4)
    vague = leave_reference(np.array([0.0, 0.0, 0.0]), np.full(3, 1e9))
    assert np.all(vague > 0)
    assert vague.sum() < 1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_prior_far_from_the_slopes_leaves_the_posterior_near(seed: int) -> None:
    """The search starts where all rows have the same curvature."""
    prior = PriorSpec(1.0, mean={"x0": 4.0, "x1": -4.0})
    case = Case("poisson-regression", features=4, rows=5000, slots=5000, seed=seed, prior=prior)
    points = build(case, case.plan(1.0), Drawn(0))
    assert compute_losses(case, points)[0] < 10


@pytest.mark.parametrize("intercept", [-100.0, -20.0, 20.0])
@pytest.mark.parametrize("family", ["logistic-regression", "probit-regression", "negative-binomial-regression"])
def test_a_prior_of_certain_labels_leaves_a_posterior(family: str, intercept: float) -> None:
    """Where the prior expects one label only, rows have no information."""
    prior = PriorSpec(1.0, scales={"intercept": 5.0}, mean={"intercept": intercept})
    case = Case(family, features=3, rows=5000, slots=5000, prior=prior)
    points = build(case, case.plan(1.0), Drawn(0))
    assert compute_losses(case, points)[0] < 10
