"""Releases of every model family, as the server would publish them, with random points."""

from typing import Any

import numpy as np
from corevault import (
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    MultinomialLogistic,
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    Pseudocoreset,
    Release,
    StudentTRegression,
)
from corevault.belief import Belief, Block
from corevault.model import ModelRequest

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.problems import make_problem
from app.inference.registry import list_families
from app.jobs.schemas import ModelBody
from app.releases.statement import make_design_json, make_model_json

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
    LogisticRegression(features=ON, target="ill", prior_scale=0.4, prior_mean={"colour": -0.6, "intercept": 0.8}),
    LinearRegression(features=ON, target="hours", prior_mean={"age": 0.3, "log_noise_scale": -0.5}),
    MultinomialLogistic(features=["age", "hours"], target="colour", prior_mean={"blue:age": 0.7, "hours": -1.0}),
    PoissonRegression(features=ON, target="visits", degrees_of_freedom=3.0, prior_mean={"intercept": 1.0}),
    GaussianMean(features=["age", "hours"], prior_scale=0.1, prior_mean={"age": 0.5}),
    GaussianMean(
        features=["age", "hours"], noise_covariance={"age": {"age": 0.5, "hours": -0.2}, "hours": {"hours": 0.3}}
    ),
)


def make_release(model: ModelRequest) -> Release:
    """The metadata that the server would publish for ``model``."""
    spec = ModelBody.model_validate(model.to_json()).spec()
    problem = make_problem(spec, FACTS)
    target = problem.design.target
    stated: dict[str, Any] = make_model_json(spec) | find_family(spec.family).defaults(spec)
    transform = None if target is None else find_family(spec.family).target_transform(target)
    return Release.from_json(
        {
            "id": "rel_1",
            "dataset_id": "ds_1",
            "method": "dp-psvi",
            "size": 30,
            "model": stated | ({} if transform is None else {"target_transform": transform}),
            "design": make_design_json(problem.design.columns),
        }
    )


def find_family(name: str) -> Any:
    """The server's family of this name."""
    (match,) = (family for family in list_families() if family.name == name)
    return match


def make_points(model: ModelRequest) -> tuple[Array64, Array64 | None, Array64]:
    """Random points: design rows, targets and weights."""
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


def make_core(model: ModelRequest, *, noisy: bool = False) -> Pseudocoreset:
    """The downloaded pseudocoreset of ``model``; ``noisy`` ones state a noise of rank D − 1."""
    release = make_release(model)
    core = Pseudocoreset(release, *make_points(model))
    if not noisy:
        return core
    names = core.laplace().names
    root = 0.1 * np.random.default_rng(8).standard_normal((len(names), len(names) - 1))
    arrays = {"names": np.array(names), "mean": np.zeros(len(names)), "covariance": root @ root.T}
    return Pseudocoreset(release, core.u, core.y, core.weight, Belief((Block("noise", "normal", arrays),)))
