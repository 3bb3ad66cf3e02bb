"""Client and server compute the same posterior of every family, without shared code."""

from typing import Any

import numpy as np
import pytest
from corevault import InvalidArgument, ProbitRegression, Release, posterior
from corevault.model import ModelRequest

from app.inference.core.problems import make_problem
from app.inference.post.laplace import fit_laplace
from app.inference.registry import list_families
from app.jobs.schemas import ModelBody
from tests.client.models import FACTS, MODELS, make_points, make_release


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_clients_posterior_equals_the_servers(model: ModelRequest) -> None:
    release, (x, y, weight) = make_release(model), make_points(model)
    belief = posterior(release, x, y, weight)
    served, design, prior = make_problem(ModelBody.model_validate(model.to_json()).spec(), FACTS)
    rows = np.asarray(served.fold(x, np.zeros(30) if y is None else design.encode_targets(y)))
    exact = fit_laplace(served, rows, weight, prior, np.zeros(served.dimension), tolerance=1e-20)
    assert belief.names == served.parameter_names([column.name for column in design.columns])
    np.testing.assert_allclose(belief.mean, exact.mean, atol=1e-6)
    covariance = np.linalg.inv(exact.factor @ exact.factor.T)
    np.testing.assert_allclose(belief.covariance, covariance, atol=1e-6 * np.abs(covariance).max())


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_without_weight_the_posterior_is_the_prior(model: ModelRequest) -> None:
    release, (x, y, weight) = make_release(model), make_points(model)
    belief = posterior(release, x, y, 0 * weight)
    prior = make_problem(ModelBody.model_validate(model.to_json()).spec(), FACTS).prior
    np.testing.assert_allclose(belief.mean, prior.mean, atol=1e-9)
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(prior.precision(prior.mean)))


def test_every_family_of_the_server_is_covered() -> None:
    assert {model.to_json()["family"] for model in MODELS} == {
        family.name for family in list_families() if family.bind is not None
    }


def test_arrays_that_do_not_fit_are_refused() -> None:
    release, (x, y, weight) = make_release(MODELS[0]), make_points(MODELS[0])
    for arrays in ((x, None, weight), (x[:, 1:], y, weight), (x, y, -weight), (x * np.nan, y, weight)):
        with pytest.raises(ValueError, match=r"must|missing|cannot"):
            posterior(release, *arrays)
    stranger = Release.from_json(dict(release.raw) | {"model": {"family": "neural-linear", "target": "ill"}})
    with pytest.raises(ValueError, match="neural-linear"):
        posterior(stranger, x, y, weight)


def test_targets_must_agree_with_the_model() -> None:
    (x, y, _), mean = make_points(MODELS[0]), make_points(MODELS[-1])[0]
    with pytest.raises(InvalidArgument, match="y must be given: logistic-regression has a target"):
        posterior(make_release(MODELS[0]), x)
    with pytest.raises(InvalidArgument, match="y must be None: gaussian-mean has no target"):
        posterior(make_release(MODELS[-1]), mean, y)


def test_a_single_name_as_features_is_refused() -> None:
    one: Any = "age"
    with pytest.raises(TypeError, match="list"):
        ProbitRegression(features=one, target="ill")
