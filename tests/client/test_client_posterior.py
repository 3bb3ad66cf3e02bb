"""Client and server compute the same posterior of every family, without shared code."""

from typing import Any

import numpy as np
import pytest
from corevault import (
    GaussianMean,
    InvalidArgument,
    LinearRegression,
    LogisticRegression,
    MultinomialLogistic,
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    Release,
    StudentTRegression,
    posterior,
)
from corevault.model import ModelRequest

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.problems import make_problem
from app.inference.post.laplace import fit_laplace
from app.inference.registry import list_families
from app.jobs.schemas import ModelBody
from app.releases.statement import make_model_json

COLUMNS = (
    Column("age", "integer", 20, 80),
    Column("hours", "real", 0, 100),
    Column("colour", "categorical", categories=("red", "green", "blue")),
    Column("ill", "binary"),
    Column("visits", "integer", 0, 40),
)
FACTS = DeclaredFacts(COLUMNS, 100, {"kind": "row"}, "private", 1e-6)
ON = ["age", "colour"]
MODELS: tuple[ModelRequest, ...] = (
    LogisticRegression(features=ON, target="ill", prior_scale=2.0),
    ProbitRegression(features=ON, target="ill", prior_scales={"colour": 0.3, "age": 5.0}),
    PoissonRegression(features=ON, target="visits", degrees_of_freedom=3.0),
    NegativeBinomialRegression(features=ON, target="visits"),
    NegativeBinomialRegression(features=ON, target="visits", dispersion=0.2, prior_scale=3.0),
    LinearRegression(features=ON, target="hours", noise_scale=20.0),
    LinearRegression(features=ON, target="hours", prior_scales={"log_noise_scale": 0.2}, degrees_of_freedom=2.0),
    StudentTRegression(features=ON, target="hours", noise_scale=20.0, noise_degrees_of_freedom=7.0),
    StudentTRegression(features=ON, target="hours", degrees_of_freedom=2.0),
    MultinomialLogistic(features=["age", "hours"], target="colour", prior_scales={"blue:age": 0.1}),
    GaussianMean(features=["age", "hours"], noise_scale=0.7, degrees_of_freedom=5.0),
    GaussianMean(features=["age", "hours"]),
)


def _release(model: ModelRequest) -> Release:
    """The metadata that the server would publish for ``model``."""
    spec = ModelBody.model_validate(model.to_json()).spec()
    problem = make_problem(spec, FACTS)
    target = problem.design.target
    stated: dict[str, Any] = make_model_json(spec) | _family(spec.family).defaults(spec)
    transform = None if target is None else _family(spec.family).target_transform(target)
    return Release.from_json(
        {
            "id": "rel_1",
            "dataset_id": "ds_1",
            "method": "dp-psvi",
            "size": 30,
            "model": stated | ({} if transform is None else {"target_transform": transform}),
            "design": [
                {"name": column.name, "source": column.source, "transform": dict(column.transform)}
                for column in problem.design.columns
            ],
        }
    )


def _family(name: str) -> Any:
    (match,) = (family for family in list_families() if family.name == name)
    return match


def _points(model: ModelRequest) -> tuple[Array64, Array64 | None, Array64]:
    rng = np.random.default_rng(4)
    design = make_problem(ModelBody.model_validate(model.to_json()).spec(), FACTS).design
    x, weight = design.sample(rng, 30), rng.uniform(0, 9, 30)
    if design.target is None:
        return x, None, weight
    if design.target.type == "binary":
        return x, rng.integers(0, 2, 30).astype(float), weight
    if design.target.type == "categorical":
        return x, rng.integers(0, 3, 30).astype(float), weight
    return x, 30 * rng.random(30), weight


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_clients_posterior_equals_the_servers(model: ModelRequest) -> None:
    release, (x, y, weight) = _release(model), _points(model)
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
    release, (x, y, weight) = _release(model), _points(model)
    belief = posterior(release, x, y, 0 * weight)
    np.testing.assert_allclose(belief.mean, 0, atol=1e-9)
    prior = make_problem(ModelBody.model_validate(model.to_json()).spec(), FACTS).prior
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(prior.precision(np.zeros(len(belief.mean)))))


def test_every_family_of_the_server_is_covered() -> None:
    assert {model.to_json()["family"] for model in MODELS} == {family.name for family in list_families()}


def test_arrays_that_do_not_fit_are_refused() -> None:
    release, (x, y, weight) = _release(MODELS[0]), _points(MODELS[0])
    for arrays in ((x, None, weight), (x[:, 1:], y, weight), (x, y, -weight), (x * np.nan, y, weight)):
        with pytest.raises(ValueError, match=r"must|missing|cannot"):
            posterior(release, *arrays)
    stranger = Release.from_json(dict(release.raw) | {"model": {"family": "neural-linear", "target": "ill"}})
    with pytest.raises(ValueError, match="neural-linear"):
        posterior(stranger, x, y, weight)


def test_targets_must_agree_with_the_model() -> None:
    (x, y, _), mean = _points(MODELS[0]), _points(MODELS[-1])[0]
    with pytest.raises(InvalidArgument, match="y must be given: logistic-regression has a target"):
        posterior(_release(MODELS[0]), x)
    with pytest.raises(InvalidArgument, match="y must be None: gaussian-mean has no target"):
        posterior(_release(MODELS[-1]), mean, y)


def test_a_single_name_as_features_is_refused() -> None:
    one: Any = "age"
    with pytest.raises(TypeError, match="list"):
        ProbitRegression(features=one, target="ill")
