"""A declared covariance of the noise of a Gaussian mean."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.problems import make_problem
from app.inference.models.gaussian import CorrelatedMean, GaussianMean
from app.inference.post.laplace import fit_laplace
from tests.inference.populations import DECLARED

NAMES = ("age", "hours", "cost")
STATED = {"age": {"age": 0.3, "cost": 0.15}, "hours": {"hours": 0.4}, "cost": {"cost": 0.25}}
COVARIANCE = np.array([[0.3, 0, 0.15], [0, 0.4, 0], [0.15, 0, 0.25]])


def _spec(stated: Any, **fields: Any) -> ModelSpec:
    return ModelSpec("gaussian-mean", NAMES, None, noise_covariance=stated, **fields)


def _model(stated: Any) -> CorrelatedMean:
    model = make_problem(_spec(stated), DECLARED).model
    assert isinstance(model, CorrelatedMean)
    return model


def test_the_covariance_is_read_in_the_order_of_the_features() -> None:
    backwards = {"cost": {"cost": 0.25, "age": 0.15}, "hours": {"hours": 0.4}, "age": {"age": 0.3, "cost": 0.15}}
    for stated in (STATED, backwards):
        np.testing.assert_allclose(np.linalg.inv(_model(stated).precision), COVARIANCE, atol=1e-12)


def test_the_posterior_is_the_conjugate_one() -> None:
    """Against the closed form: precision ``P0 + n S^-1``, and a mean from weighted sums."""
    rng, spec = np.random.default_rng(1), _spec(STATED, prior=PriorSpec(0.5, mean={"hours": 0.4}))
    problem = make_problem(spec, DECLARED)
    x, weights = rng.uniform(-1, 1, (40, 3)), rng.uniform(0, 3, 40)
    found = fit_laplace(problem.model, problem.model.fold(x, np.zeros(40)), weights, problem.prior, np.zeros(3))
    inverse = np.linalg.inv(COVARIANCE)
    precision = np.eye(3) / 0.25 + weights.sum() * inverse
    mean = np.linalg.solve(precision, np.array([0, 0.4, 0]) / 0.25 + inverse @ (weights @ x))
    np.testing.assert_allclose(found.factor @ found.factor.T, precision)
    np.testing.assert_allclose(found.mean, mean)


def test_a_diagonal_covariance_is_the_noise_scale() -> None:
    """Every function of the model agrees with that of independent noise."""
    rng = np.random.default_rng(2)
    plain, declared = GaussianMean(3, 0.7), _model({name: {name: 0.49} for name in NAMES})
    x, draws, theta = rng.uniform(-1, 1, (6, 3)), rng.standard_normal((4, 3)), rng.standard_normal(3)
    rows, single = plain.fold(x, np.zeros(6)), plain.fold(x, np.zeros(6)).astype(np.float32)
    transform = np.eye(3) + 0.2 * rng.standard_normal((3, 3))

    def evaluate(model: GaussianMean) -> list[Array64]:
        expansion = model.expand(rows, np.ones(6), theta)
        factors = model.information_factors(single, theta)
        return [
            model.log_likelihood(rows, draws),
            model.point_gradient(x, np.zeros(6), draws, np.arange(4.0))[0],
            np.array([expansion.value]),
            expansion.gradient,
            expansion.information,
            model.scores(single, theta),
            model.bounded_scores(single, theta, transform, 0.8),
            np.einsum("nri,nrj->nij", factors, factors),
        ]

    assert declared.noise == pytest.approx(plain.noise)
    for one, other in zip(evaluate(plain), evaluate(declared), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"age": {"age": 1.0}},
        {**STATED, "secret_name": {"secret_name": 1.0}},
        {**STATED, "hours": {"hours": 0.4, "secret_name": 0.1}},
        {**STATED, "hours": {"hours": -0.4}},
        {**STATED, "hours": {"hours": float("nan")}},
        {**STATED, "hours": {"hours": float("inf")}},
        {**STATED, "hours": {"hours": 1e-12}},
        {**STATED, "age": {"age": 0.3, "cost": 0.3}},
        {**STATED, "age": {"age": 0.3, "cost": float("nan")}},
        {**STATED, "cost": {"cost": 0.25, "age": 0.1}},
    ],
)
def test_a_faulty_covariance_is_refused_with_its_pointer(stated: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_problem(_spec(stated), DECLARED)
    assert caught.value.faults[0].pointer == "/model/noise_covariance"
    assert "secret_name" not in caught.value.detail


def test_a_scale_beside_a_covariance_is_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_problem(_spec(STATED, noise_scale=1.0), DECLARED)
    assert caught.value.faults[0].pointer == "/model/noise_covariance"


def test_other_families_have_no_covariance() -> None:
    spec = replace(_spec(STATED), family="linear-regression", features=("age", "hours"), target="cost")
    with pytest.raises(InvalidRequest) as caught:
        make_problem(spec, DECLARED)
    assert caught.value.faults[0].pointer == "/model/noise_covariance"
