"""Priors: densities, their derivatives, and the scales of a request."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_t

from app.errors import InvalidRequest
from app.inference.core.model import Array64
from app.inference.core.plan import PriorSpec
from app.inference.core.priors import HierarchicalPrior, NormalPrior, Prior
from app.inference.core.problems import make_problem
from app.inference.models.logistic import LogisticRegression
from app.inference.post.laplace import fit_laplace
from tests.inference.support import SPEC, facts

SCALES, MEAN = np.array([0.5, 2.0, 1.0]), np.array([1.5, -2.0, 0.3])
PRIORS = (
    NormalPrior(SCALES),
    HierarchicalPrior(SCALES, 3.0),
    HierarchicalPrior(SCALES, 0.7, independent=1),
    HierarchicalPrior(SCALES, 1e5),
    NormalPrior(SCALES, MEAN),
    HierarchicalPrior(SCALES, 3.0, centre=MEAN),
    HierarchicalPrior(SCALES, 0.7, independent=1, centre=MEAN),
)


def _prior(**fields: Any) -> Prior:
    return make_problem(replace(SPEC, prior=PriorSpec(**fields)), facts(10)).prior


def _gradients(prior: Prior, theta: Array64, step: float = 1e-6) -> Array64:
    moves = step * np.eye(len(theta))
    return np.array([prior.log_density(theta[None] + e) - prior.log_density(theta[None] - e) for e in moves])[:, 0] / (
        2 * step
    )


@pytest.mark.parametrize("prior", PRIORS)
def test_the_gradient_is_that_of_the_density(prior: Prior) -> None:
    for theta in np.random.default_rng(0).standard_normal((5, 3)) * 3:
        np.testing.assert_allclose(prior.gradient(theta), _gradients(prior, theta), atol=1e-7)


@pytest.mark.parametrize("prior", PRIORS)
def test_the_precision_is_that_of_a_normal_minorant(prior: Prior) -> None:
    """The quadratic at theta is nowhere above the log density, so Newton steps climb."""
    rng = np.random.default_rng(1)
    for theta in rng.standard_normal((20, 3)) * 2:
        precision, gradient = prior.precision(theta), prior.gradient(theta)
        assert np.all(np.linalg.eigvalsh(precision) > 0)
        moves = rng.standard_normal((50, 3)) * rng.choice([0.1, 1, 10], (50, 1))
        quadratic = moves @ gradient - 0.5 * np.einsum("ni,ij,nj->n", moves, precision, moves)
        gain = prior.log_density(theta + moves) - prior.log_density(theta[None])
        assert np.all(gain >= quadratic - 1e-9 * np.abs(quadratic) - 1e-12)


def test_the_hierarchical_prior_is_the_multivariate_t() -> None:
    theta = np.random.default_rng(2).standard_normal((9, 3))
    exact = multivariate_t(np.zeros(3), np.diag(SCALES**2), df=3.0).logpdf(theta)
    np.testing.assert_allclose(HierarchicalPrior(SCALES, 3.0).log_density(theta), exact)
    normal = NormalPrior(SCALES).log_density(theta)
    np.testing.assert_allclose(HierarchicalPrior(SCALES, 1e7).log_density(theta), normal, atol=1e-4)


def test_an_independent_parameter_is_normal() -> None:
    prior, alone = HierarchicalPrior(SCALES, 3.0, independent=1), HierarchicalPrior(SCALES[:2], 3.0)
    theta = np.random.default_rng(3).standard_normal((9, 3))
    expected = alone.log_density(theta[:, :2]) + NormalPrior(SCALES[2:]).log_density(theta[:, 2:])
    np.testing.assert_allclose(prior.log_density(theta), expected)


@pytest.mark.parametrize("prior", [NormalPrior(np.array([3.0])), HierarchicalPrior(np.array([3.0]), 4.0)])
def test_draws_follow_the_density(prior: Prior) -> None:
    """The share of 40,000 draws within one scale, to six standard errors."""
    inside, _ = quad(lambda t: float(np.exp(prior.log_density(np.array([[t]])))[0]), -3, 3)
    share = np.mean(np.abs(prior.sample(np.random.default_rng(4), 40_000)) < 3)
    assert abs(share - inside) < 6 * np.sqrt(inside * (1 - inside) / 40_000)


def test_hierarchical_draws_share_one_scale() -> None:
    """Squares of two coefficients are dependent: their ranks correlate, unlike under independent normals."""
    for prior, dependent in ((HierarchicalPrior(SCALES, 2.0), True), (NormalPrior(SCALES), False)):
        ranks = np.argsort(np.argsort(np.abs(prior.sample(np.random.default_rng(5), 5_000)[:, :2]), axis=0), axis=0)
        correlation = float(np.asarray(np.corrcoef(ranks.T))[0, 1])
        assert (correlation > 0.1) is dependent


@pytest.mark.parametrize("degrees", [0.5, 3.0])
@pytest.mark.parametrize("weight", [0.01, 1.0, 50.0])
def test_laplace_reaches_the_exact_mode_under_a_hierarchical_prior(degrees: float, weight: float) -> None:
    rng, model, prior = np.random.default_rng(6), LogisticRegression(3), HierarchicalPrior(SCALES, degrees)
    rows, weights = rng.standard_normal((30, 3)) + 0.5, np.full(30, weight)
    found = fit_laplace(model, rows, weights, prior, np.full(3, 4.0), tolerance=1e-16)

    def energy(theta: Array64) -> float:
        return -float(weights @ model.log_likelihood(rows, theta[None])[:, 0] + prior.log_density(theta[None])[0])

    independent = minimize(energy, found.mean + 0.1, method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(found.mean, independent, atol=1e-6)


def test_scales_are_set_by_parameter_column_and_feature() -> None:
    prior = _prior(scale=3.0, scales={"age": 0.5, "colour": 2.0, "colour=blue": 7.0, "intercept": 10.0})
    assert isinstance(prior, NormalPrior)
    np.testing.assert_array_equal(prior.scales, [0.5, 3.0, 2.0, 7.0, 3.0, 10.0])
    hierarchical = _prior(scale=3.0, degrees_of_freedom=4.0)
    assert isinstance(hierarchical, HierarchicalPrior)
    assert hierarchical.degrees_of_freedom == 4.0
    np.testing.assert_array_equal(hierarchical.scales, np.full(6, 3.0))


def test_means_are_set_by_parameter_column_and_feature() -> None:
    stated = {"age": 0.5, "colour": 2.0, "colour=blue": 7.0, "intercept": -1.0}
    for prior in (_prior(mean=stated), _prior(mean=stated, degrees_of_freedom=4.0)):
        np.testing.assert_array_equal(prior.mean, [0.5, 0.0, 2.0, 7.0, 0.0, -1.0])
        np.testing.assert_array_equal(prior.gradient(prior.mean), 0)
        draws = prior.sample(np.random.default_rng(0), 100_000)
        np.testing.assert_allclose(np.median(draws, axis=0), prior.mean, atol=0.05)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"scale": 0.0}, "/model/prior/scale"),
        ({"scale": float("nan")}, "/model/prior/scale"),
        ({"scale": 1e7}, "/model/prior/scale"),
        ({"scales": {"age": -1.0}}, "/model/prior/scales"),
        ({"scales": {"secret_name": 1.0}}, "/model/prior/scales"),
        ({"mean": {"age": 100.5}}, "/model/prior/mean"),
        ({"mean": {"age": float("nan")}}, "/model/prior/mean"),
        ({"mean": {"secret_name": 1.0}}, "/model/prior/mean"),
        ({"degrees_of_freedom": 0.0}, "/model/prior/degrees_of_freedom"),
        ({"degrees_of_freedom": float("inf")}, "/model/prior/degrees_of_freedom"),
    ],
)
def test_a_faulty_prior_is_refused_with_its_pointer(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        _prior(**fields)
    assert caught.value.faults[0].pointer == pointer
    assert "secret_name" not in caught.value.detail
