"""Cases and measures against a second derivation.

These are optimisation on raw columns, quadrature, and densities of the library.
"""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from app.inference.core.release import Posterior, Pseudocoreset
from app.inference.post.laplace import Laplace
from benchmarks.cases import make_design_rows, make_gaussian_mean, make_linear_regression, make_logistic, narrow
from benchmarks.designs import Rows
from benchmarks.measures import compute_prediction, compute_prior_divergence, fit_posterior, read_stated
from benchmarks.runs import Job, execute
from support.divergence import compute_divergence
from tests.benchmarks.cases import case, rows

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def covariance(belief: Laplace) -> np.ndarray:
    return np.linalg.inv(belief.factor @ belief.factor.T)


def test_the_full_posterior_equals_that_of_raw_columns() -> None:
    belief, (x, y) = case(bound=4.0).exact, rows(200)
    assert belief is not None
    raw = np.column_stack((x, np.ones(len(x))))
    sign = np.where(y > 0, 1, -1)
    mode = minimize(lambda t: np.logaddexp(0, -sign * (raw @ t)).sum() + 0.5 * t @ t, np.zeros(3), tol=1e-12).x
    p = expit(raw @ mode)
    stretch = np.array([4, 4, 1])
    np.testing.assert_allclose(belief.mean / stretch, mode, atol=1e-5)
    precision = (raw * (p * (1 - p))[:, None]).T @ raw + np.eye(3)
    np.testing.assert_allclose(covariance(belief) / np.outer(stretch, stretch), np.linalg.inv(precision), rtol=1e-4)


def test_the_divergence_does_not_depend_on_the_bounds() -> None:
    np.testing.assert_allclose(
        compute_prior_divergence(case(bound=4.0)), compute_prior_divergence(case(bound=64.0)), rtol=1e-5
    )


def test_a_narrowed_case_keeps_the_posterior_of_raw_rows() -> None:
    wide, tight = case(bound=4.0), narrow(case(bound=4.0), 0.5)
    np.testing.assert_allclose(compute_prior_divergence(tight), compute_prior_divergence(wide), rtol=1e-10)
    x, _ = make_design_rows(tight)
    assert np.abs(x).max() == 1


def test_bounds_that_would_clamp_are_refused() -> None:
    with pytest.raises(ValueError, match="clamp"):
        case(bound=1.0)


def test_the_divergence_equals_the_textbook_formula() -> None:
    rng = np.random.default_rng(0)
    factors = [np.tril(rng.normal(size=(4, 4))) + 4 * np.eye(4) for _ in range(2)]
    p, q = (Laplace(rng.normal(size=4), factor) for factor in factors)
    a, b = covariance(p), covariance(q)
    shift = q.mean - p.mean
    expected = (
        0.5 * (np.trace(np.linalg.inv(b) @ a) - 4 + shift @ np.linalg.inv(b) @ shift + np.linalg.slogdet(b)[1])
        - 0.5 * np.linalg.slogdet(a)[1]
    )
    np.testing.assert_allclose(compute_divergence(p, q), expected, rtol=1e-10)


def test_a_stated_posterior_is_read_from_its_covariance() -> None:
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(covariance(read_stated(Posterior(("a", "b"), np.zeros(2), matrix))), matrix)
    np.testing.assert_allclose(
        covariance(read_stated(Posterior(("a", "b"), np.zeros(2), np.array([2.0, 3.0])))), np.diag([2.0, 3.0])
    )


def test_held_out_labels_are_predicted_by_the_posterior_not_its_mode() -> None:
    """Gauss-Hermite quadrature over the logit. The probit approximation is much closer than the mode."""
    belief = Laplace(np.array([2.0, -3.0, 0.3]), np.eye(3) / 2)
    table = case()
    x, y = make_design_rows(table, table.held_out)
    nodes, weights = hermegauss(61)
    mean, spread = x @ belief.mean, np.sqrt(np.einsum("ij,jk,ik->i", x, covariance(belief), x))
    p = expit(mean[:, None] + spread[:, None] * nodes) @ weights / weights.sum()
    exact = np.log(np.where(y > 0, p, 1 - p)).mean()
    predicted = compute_prediction(table, belief)
    np.testing.assert_allclose(predicted.log_likelihood, exact, atol=0.01)
    assert predicted.accuracy == ((p > 0.5) == (y > 0)).mean()
    by_mode = np.log(expit(np.where(y > 0, 1, -1) * mean)).mean()
    assert abs(by_mode - exact) > 0.05


def test_predictions_of_a_gaussian_mean_are_normal_in_raw_units() -> None:
    rng = np.random.default_rng(0)
    x, held_out = rng.standard_normal((40, 3)), rng.standard_normal((5, 3))
    table = make_gaussian_mean("mean", x, held_out)
    assert table.exact is not None
    expected = multivariate_normal(x.sum(axis=0) / 41, (1 + 1 / 41) * np.eye(3)).logpdf(held_out).mean()
    np.testing.assert_allclose(compute_prediction(table, table.exact).log_likelihood, expected, rtol=1e-6)


def test_predictions_of_a_regression_are_normal_in_raw_units() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((60, 2)), rng.standard_normal(60)
    y = x @ np.array([2.0, -1.0]) + 3 + noise
    unseen = Rows(x[:5] + 0.1, y[:5] - 0.2)
    table = make_linear_regression("line", Rows(x, y), unseen)
    raw, new = np.column_stack((x, np.ones(60))), np.column_stack((unseen.x, np.ones(5)))
    precision = raw.T @ raw / y.var() + np.eye(3) / np.mean(y**2)
    mean = np.linalg.solve(precision, raw.T @ y / y.var())
    spread = np.sqrt(y.var() + np.einsum("ij,jk,ik->i", new, np.linalg.inv(precision), new))
    assert table.exact is not None
    expected = norm(new @ mean, spread).logpdf(unseen.y).mean()
    np.testing.assert_allclose(compute_prediction(table, table.exact).log_likelihood, expected, rtol=1e-6)


def test_a_coreset_of_all_rows_has_the_full_posterior() -> None:
    record = execute(Job(case(), "uniform", 200, 0))
    assert abs(record.kl) < 1e-9
    assert record.log_likelihood == pytest.approx(record.full_log_likelihood, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "least"), [(0.3, 1e-2), (np.inf, 1e-9)])
def test_private_runs_are_measured_by_their_points(epsilon: float, least: float) -> None:
    table = make_logistic("private", rows(2_000), bound=4.0)
    record = execute(Job(table, "dp-psvi", 5, 0, {"iterations": 20}, epsilon))
    assert record.outcome == "finished"
    assert least < record.kl
    assert record.relative_kl == pytest.approx(record.kl / compute_prior_divergence(table))
    assert np.isnan(record.accuracy)


def test_the_posterior_of_a_release_has_the_exact_mode() -> None:
    table = case()
    x, y = make_design_rows(table)
    release = Pseudocoreset(x, y, np.ones(len(y)), table.problem.design.columns)
    assert table.exact is not None
    np.testing.assert_allclose(fit_posterior(table, release).mean, table.exact.mean, rtol=1e-9)
