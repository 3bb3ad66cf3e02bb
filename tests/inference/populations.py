"""A table with a target for every family of models, and its posteriors."""

from dataclasses import replace
from functools import cache

import numpy as np

from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import Problem
from app.inference.post.laplace import Laplace, fit_laplace
from support.table import Table
from tests.inference.support import COLUMNS, facts, table

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
    ModelSpec("student-t-regression", REGRESSORS, "cost", noise_scale=20.0),
    ModelSpec("student-t-regression", REGRESSORS, "cost", degrees_of_freedom=8.0),
    ModelSpec("negative-binomial-regression", REGRESSORS, "visits", dispersion=0.1),
    ModelSpec(
        "gaussian-mean",
        ("age", "hours", "cost"),
        None,
        noise_covariance={"age": {"age": 0.3, "cost": 0.15}, "hours": {"hours": 0.4}, "cost": {"cost": 0.25}},
    ),
)


@cache
def population() -> Table:
    """Make rows whose targets follow the models, then null rows."""
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


def posterior(problem: Problem, u: Array64, y: Array64, weight: Array64) -> Laplace:
    rows = np.asarray(problem.model.fold(u, y))
    return fit_laplace(problem.model, rows, weight, problem.prior, np.zeros(problem.model.dimension))
