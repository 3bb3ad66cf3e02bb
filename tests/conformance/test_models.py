"""The contract of every model: targets, shapes, and a mode that can be fitted."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from app.errors import InvalidRequest
from app.inference.core.model import Array64
from app.inference.core.priors import NormalPrior
from app.inference.post.laplace import fit_laplace
from app.inference.registry import list_families
from tests.conformance.models import CASES, ModelCase, N, P


def test_every_registered_model_is_a_case() -> None:
    assert {case.family() for case in CASES} == {each for each in list_families() if each.bind is not None}


def test_family_is_registered(case: ModelCase) -> None:
    assert case.family() in list_families()
    assert case.family().description


def test_targets_are_checked(case: ModelCase) -> None:
    if case.good is not None:
        case.family().check_target(case.good)
    with pytest.raises(InvalidRequest) as caught:
        case.family().check_target(case.bad)
    assert caught.value.faults[0].pointer == "/model/target"


def test_dimensions_fit_together(case: ModelCase) -> None:
    rng, model = np.random.default_rng(0), case.model()
    rows = case.rows(rng)
    assert rows.shape == (N, model.row_width)
    names = model.parameter_names([f"x{i}" for i in range(P)])
    assert len(set(names)) == len(names) == model.dimension >= model.predictors * P
    x = case.x(rng)
    again = model.features(model.fold(x, case.targets(rng, N)))
    assert np.all((again == x).all(axis=1) | (again == -x).all(axis=1))


def test_null_row_contributes_zero(case: ModelCase) -> None:
    rng, model = np.random.default_rng(3), case.model()
    null, theta = np.zeros((1, model.row_width)), case.theta(rng)
    assert np.ptp(model.log_likelihood(null, case.draws(rng))) == 0
    expansion = model.expand(null, np.ones(1), theta)
    assert not np.any(expansion.gradient)
    assert not np.any(expansion.information)
    single = null.astype(np.float32)
    assert not np.any(model.scores(single, theta))
    assert not np.any(model.bounded_scores(single, theta, case.transform(rng), 1.0))
    assert not np.any(model.information_factors(single, theta))


def test_sampled_targets_follow_the_likelihood(case: ModelCase) -> None:
    """At the true parameter the score has mean zero: within six standard errors over 20,000 rows."""
    rng, model = np.random.default_rng(5), case.model()
    x, theta = case.x(rng, 20_000), case.theta(rng)
    y = model.sample_targets(rng, x, theta)
    assert y.shape == (20_000,)
    if case.good is None:
        x = theta + (case.noise_scale or 1.0) * rng.standard_normal(x.shape)
    expansion = model.expand(np.asarray(model.fold(x, y)), np.ones(20_000), theta)
    assert np.all(np.abs(expansion.gradient) < 6 * np.sqrt(np.diag(expansion.information)))


def test_starting_targets_have_the_shape_and_spread_of_targets(case: ModelCase) -> None:
    rng = np.random.default_rng(6)
    y = case.model().starting_targets(rng, case.x(rng, 9))
    assert y.shape == (9,)
    if case.good is not None:
        assert np.ptp(y) > 0
    if case.good is not None and case.good.lower is not None and case.good.upper is not None:
        bounds = (-1.0, 1.0) if case.family().scales_target else (case.good.lower, case.good.upper)
        assert bounds[0] <= y.min() <= y.max() <= bounds[1]


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("start", [0.0, 3.0])
def test_laplace_finds_the_mode_of_an_independent_optimiser(case: ModelCase, scale: float, start: float) -> None:
    rng, model = np.random.default_rng(7), case.model()
    prior = NormalPrior(np.full(model.dimension, scale))
    rows, weights = case.rows(rng, 40), rng.uniform(0, 20, 40)
    fitted = fit_laplace(model, rows, weights, prior, np.full(model.dimension, start))

    def energy(theta: NDArray[np.float64]) -> float:
        likelihood = float(weights @ model.log_likelihood(rows, theta[None, :])[:, 0])
        return -likelihood - float(prior.log_density(theta[None, :])[0])

    def slope(theta: NDArray[np.float64]) -> Array64:
        return -model.expand(rows, weights, theta).gradient - prior.gradient(theta)

    start_of_other = np.zeros(model.dimension)
    independent = minimize(energy, start_of_other, jac=slope, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(fitted.mean, independent, atol=1e-4 * max(1.0, scale))
    precision = fitted.factor @ fitted.factor.T
    information = model.expand(rows, weights, fitted.mean).information + prior.precision(fitted.mean)
    np.testing.assert_allclose(precision, information, rtol=1e-3, atol=1e-6 * np.abs(information).max())
