"""Newton's mode against scipy's optimiser, its covariance against finite differences, the KL against quadrature."""

import numpy as np
import pytest
from corevault import Gaussian, logistic_laplace
from corevault.laplace import Array
from scipy.integrate import quad
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal


def _problem(n: int = 60, p: int = 4) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(-1, 1, (n, p - 1)), np.ones(n)])
    y = (rng.random(n) < 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1]))).astype(float)
    return x, y, rng.uniform(0, 30, n)


def _potential(theta: Array, x: Array, y: Array, weight: Array, scale: float) -> float:
    signed = (2 * y - 1) * (x @ theta)
    return float(weight @ np.log1p(np.exp(-signed)) + theta @ theta / (2 * scale**2))


def _slope(theta: Array, x: Array, y: Array, weight: Array, scale: float) -> Array:
    signs = 2 * y - 1
    pull = weight * signs / (1 + np.exp(signs * (x @ theta)))
    slope: Array = -x.T @ pull + theta / scale**2
    return slope


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_mode_equals_that_of_an_optimiser(scale: float) -> None:
    x, y, weight = _problem()
    optimum = minimize(
        _potential, np.zeros(4), args=(x, y, weight, scale), jac=_slope, method="BFGS", options={"gtol": 1e-7}
    )
    np.testing.assert_allclose(logistic_laplace(x, y, weight, prior_scale=scale).mean, optimum.x, atol=1e-7)


def test_gradient_is_zero_and_covariance_is_the_inverse_curvature() -> None:
    x, y, weight = _problem()
    belief = logistic_laplace(x, y, weight, prior_scale=2.0)
    at_mode = approx_fprime(belief.mean, _potential, 1e-7, x, y, weight, 2.0)
    np.testing.assert_allclose(at_mode, 0.0, atol=1e-4)
    curvature = approx_fprime(belief.mean, _slope, 1e-7, x, y, weight, 2.0)
    np.testing.assert_allclose(belief.covariance @ curvature, np.eye(4), atol=1e-5)


def test_weights_count_as_repeated_rows() -> None:
    x, y, _ = _problem(20)
    times = np.arange(20) % 4
    weighted = logistic_laplace(x, y, times.astype(float))
    repeated = logistic_laplace(np.repeat(x, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-10)
    np.testing.assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-8)


def test_zero_weights_give_the_prior() -> None:
    x, y, weight = _problem()
    belief = logistic_laplace(x, y, 0 * weight, prior_scale=3.0, names=["a", "b", "c", "intercept"])
    prior = Gaussian.prior(["a", "b", "c", "intercept"], 3.0)
    np.testing.assert_allclose(belief.mean, prior.mean)
    np.testing.assert_allclose(belief.covariance, prior.covariance)


def test_separable_data_with_large_weights_converge() -> None:
    x = np.column_stack([np.linspace(-1, 1, 40), np.ones(40)])
    belief = logistic_laplace(x, (x[:, 0] > 0).astype(float), np.full(40, 1e6), prior_scale=100.0)
    assert np.isfinite(belief.mean).all()
    assert belief.mean[0] > 50


@pytest.mark.parametrize(
    ("x", "y", "weight", "scale"),
    [
        (np.ones((3, 1)), np.ones(2), np.ones(3), 1.0),
        (np.ones(3), np.ones(3), np.ones(3), 1.0),
        (np.ones((3, 1)), np.array([0.0, 1.0, 2.0]), np.ones(3), 1.0),
        (np.ones((3, 1)), np.ones(3), np.array([1.0, -1.0, 1.0]), 1.0),
        (np.full((3, 1), np.nan), np.ones(3), np.ones(3), 1.0),
        (np.ones((3, 1)), np.ones(3), np.ones(3), 0.0),
    ],
)
def test_arguments_out_of_bounds_are_refused(x: Array, y: Array, weight: Array, scale: float) -> None:
    with pytest.raises(ValueError, match=r"must|cannot"):
        logistic_laplace(x, y, weight, prior_scale=scale)


def test_the_kl_equals_the_integral() -> None:
    p = Gaussian(("a",), np.array([0.3]), np.array([[0.5]]))
    q = Gaussian(("a",), np.array([-1.0]), np.array([[2.0]]))
    first, second = multivariate_normal(p.mean, p.covariance), multivariate_normal(q.mean, q.covariance)
    integral, _ = quad(lambda t: first.pdf(t) * (first.logpdf(t) - second.logpdf(t)), -10, 10)
    assert p.kl(q) == pytest.approx(integral, rel=1e-8)


def test_the_kl_is_invariant_to_a_change_of_coordinates() -> None:
    rng = np.random.default_rng(2)
    a, b, turn = (rng.standard_normal((3, 3)) for _ in range(3))
    names = ("a", "b", "c")
    p = Gaussian(names, rng.standard_normal(3), a @ a.T + np.eye(3))
    q = Gaussian(names, rng.standard_normal(3), b @ b.T + np.eye(3))
    turned = [Gaussian(names, turn @ g.mean, turn @ g.covariance @ turn.T) for g in (p, q)]
    assert p.kl(q) == pytest.approx(turned[0].kl(turned[1]))
    assert p.kl(p) == pytest.approx(0.0, abs=1e-12)
    assert p.kl(q) > 0


def test_the_kl_between_different_coefficients_is_refused() -> None:
    with pytest.raises(ValueError, match="different coefficients"):
        Gaussian.prior(["a"], 1.0).kl(Gaussian.prior(["b"], 1.0))


def test_draws_have_the_stated_moments() -> None:
    x, y, weight = _problem()
    belief = logistic_laplace(x, y, weight)
    draws = belief.sample(200_000, np.random.default_rng(3))
    np.testing.assert_allclose(draws.mean(0), belief.mean, atol=4 * belief.sd.max() / np.sqrt(200_000) * 2)
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance, atol=0.03 * belief.covariance.max())


def test_the_summary_names_intervals() -> None:
    belief = Gaussian(("a", "b"), np.array([1.0, -2.0]), np.diag([4.0, 0.25]))
    row = belief.rows()[1]
    assert (row["name"], row["mean"], row["sd"]) == ("b", -2.0, 0.5)
    assert row["high"] == pytest.approx(-2.0 + 1.959964 * 0.5)
    assert belief.summary().loc["b", "high"] == row["high"]
    assert list(belief.to_pandas().columns) == ["mean", "sd", "low", "high"]


def test_predictions_are_close_to_the_averaged_logistic() -> None:
    belief = Gaussian(("a", "b"), np.array([1.0, -0.5]), np.array([[0.8, 0.2], [0.2, 0.5]]))
    x = np.array([[1.0, 1.0], [-1.0, 1.0], [0.3, 1.0]])
    draws = belief.sample(100_000, np.random.default_rng(4))
    averaged = (1 / (1 + np.exp(-x @ draws.T))).mean(1)
    np.testing.assert_allclose(belief.predict_probability(x), averaged, atol=0.01)
