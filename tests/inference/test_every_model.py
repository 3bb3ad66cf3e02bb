"""DP-PSVI with every model: on a table that follows it, the released posterior comes to the table's."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.inference.bounds import project
from app.inference.laplace import Laplace, laplace
from app.inference.oracle import ClippedGaussianOracle
from app.inference.problems import Problem, model_for
from app.inference.protocol import Array64, Column, Mechanism, ModelSpec, PlanRequest, Pseudocoreset
from app.inference.registry import families, method
from app.inference.rng import monte_carlo_generator, sampling_generator
from app.inference.runner import run
from tests.inference.support import COLUMNS, NullNoise, Table, divergence, facts, table

SLOTS, ROWS = 4200, 4000
DECLARED = replace(
    facts(SLOTS),
    columns=(
        *COLUMNS,
        Column("cost", "real", -50, 250),
        Column("visits", "integer", 0, 60),
        Column("blood", "categorical", categories=("o", "a", "b")),
    ),
)
REGRESSORS = ("age", "hours", "smoker")
SPECS = (
    ModelSpec("logistic-regression", REGRESSORS, "ill"),
    ModelSpec("probit-regression", REGRESSORS, "ill"),
    ModelSpec("linear-regression", REGRESSORS, "cost", noise_scale=30.0),
    ModelSpec("linear-regression", REGRESSORS, "cost"),
    ModelSpec("poisson-regression", REGRESSORS, "visits"),
    ModelSpec("multinomial-logistic", REGRESSORS, "blood"),
    ModelSpec("gaussian-mean", ("age", "hours", "cost"), None),
)


@cache
def _source() -> Table:
    source, rng = table(ROWS, slots=SLOTS), np.random.default_rng(3)
    columns = source.columns
    age, hours, smoker = (columns["age"] - 50) / 30, columns["hours"] / 50 - 1, 2 * columns["smoker"] - 1
    cost = 100 + 60 * age - 20 * hours + 30 * rng.standard_normal(SLOTS)
    odds = np.exp(np.stack((0 * age, age - 0.5, 0.7 * smoker - hours)))
    columns["cost"] = np.clip(cost, -50, 250)
    columns["visits"] = np.minimum(rng.poisson(np.exp(0.8 * age + 0.3 * smoker + 0.7)), 60).astype(float)
    columns["blood"] = (rng.random(SLOTS) > np.cumsum(odds / odds.sum(axis=0), axis=0)).sum(axis=0).astype(np.uint16)
    for values in columns.values():
        values[ROWS:] = 0
    return source


def _run(spec: ModelSpec, **parameters: bool) -> Pseudocoreset:
    request = PlanRequest("dp-psvi", 20, spec, {"posterior_draws": 40, **parameters}, Mechanism(0.05, 0.2, 400))
    plan = method("dp-psvi").plan(request, DECLARED)
    problem = model_for(spec, DECLARED)
    asked = ClippedGaussianOracle(
        problem.model, plan, DECLARED, _source(), noise=NullNoise(), sampling=sampling_generator()
    )
    return run(plan, DECLARED, asked, monte_carlo_generator(), lambda _: None)


def _posterior(problem: Problem, u: Array64, y: Array64, weight: Array64) -> Laplace:
    rows = np.asarray(problem.model.fold(u, y))
    return laplace(problem.model, rows, weight, problem.prior, np.zeros(problem.model.dimension))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
def test_a_run_brings_the_posterior_to_the_tables(spec: ModelSpec) -> None:
    """KL to the full posterior, without noise, against the prior's."""
    points, problem = _run(spec), model_for(spec, DECLARED)
    assert (points.y is None) is (spec.target is None)
    assert points.u.shape == (20, problem.design.width)
    source = _source()
    x, y, present = problem.design.encode(source.gather(np.arange(SLOTS)))
    exact = _posterior(problem, x.astype(float), y.astype(float), present.astype(float))
    targets = np.zeros(20) if points.y is None else points.y
    found = _posterior(problem, points.u, targets, points.weight)
    prior = _posterior(problem, points.u, targets, np.zeros(20))
    assert divergence(found, exact) < 0.05 * divergence(prior, exact)


def test_points_stay_within_bounds_where_the_analyst_asks_for_it() -> None:
    spec = replace(SPECS[0], features=("age", "hours", "colour", "smoker"))
    design = model_for(spec, DECLARED).design
    free, kept = _run(spec).u, _run(spec, within_bounds=True).u
    np.testing.assert_allclose(project(design, kept), kept, atol=1e-12)
    assert np.abs(project(design, free) - free).max() > 0.1


def test_every_model_is_here() -> None:
    assert {spec.family for spec in SPECS} == {family.name for family in families()}


@pytest.mark.parametrize("spec", SPECS[2:5], ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
def test_targets_that_are_numbers_move_within_their_bounds(spec: ModelSpec) -> None:
    points, problem = _run(spec), model_for(spec, DECLARED)
    target = problem.design.target
    assert points.y is not None
    assert target is not None
    assert target.lower is not None
    assert target.upper is not None
    start = problem.model.starting_targets(np.random.default_rng(0), points.u)
    assert np.max(np.abs(np.sort(points.y) - np.sort(start))) > 0.01 * np.ptp(start)
    assert target.lower <= points.y.min() <= points.y.max() <= target.upper
