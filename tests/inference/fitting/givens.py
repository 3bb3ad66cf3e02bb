"""Posteriors to fit: of every model, of bounded and of collinear designs."""

from typing import NamedTuple

import numpy as np

from app.inference.core.design import Design
from app.inference.core.designs.columns import ColumnEncoder
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64, Model
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.priors import NormalPrior, Prior
from app.inference.core.problems import make_problem
from app.inference.core.release import DesignColumn
from app.inference.models.logistic import LogisticRegression
from app.inference.post.laplace import fit_laplace

COLUMNS = (
    *(Column(f"x{index}", "real", -1, 1) for index in range(4)),
    Column("group", "categorical", categories=("a", "b", "c")),
    Column("label", "binary"),
    Column("amount", "real", -3, 5),
    Column("count", "integer", 0, 50),
    Column("kind", "categorical", categories=("u", "v", "w")),
)
FEATURES = ("x0", "x1", "group", "x2", "x3")
TARGETS = {
    "logistic-regression": "label",
    "probit-regression": "label",
    "linear-regression": "amount",
    "student-t-regression": "amount",
    "poisson-regression": "count",
    "negative-binomial-regression": "count",
    "multinomial-logistic": "kind",
}
NORMAL = PriorSpec()
HIERARCHICAL = PriorSpec(2.0, {"x0": 0.3}, 5.0)


class Givens(NamedTuple):
    model: Model
    design: Design
    prior: Prior
    mean: Array64
    precision: Array64


def posterior(
    family: str,
    *,
    prior: PriorSpec = NORMAL,
    noise_scale: float | None = None,
    degrees_of_freedom: float | None = None,
    rows: int = 3000,
) -> Givens:
    """Compute the Laplace approximation of a posterior for rows drawn from the model."""
    target = TARGETS.get(family)
    features = tuple(name for name in FEATURES if target or name != "group")
    spec = ModelSpec(family, features, target, prior, noise_scale, degrees_of_freedom)
    model, design, found = make_problem(spec, DeclaredFacts(COLUMNS, rows, {"kind": "row"}, "public"))
    rng = np.random.default_rng(7)
    x, theta = design.sample(rng, rows), 0.7 * rng.standard_normal(model.dimension)
    return _of(model, design, found, x, model.sample_targets(rng, x, theta))


def normal_design(width: int, rows: int) -> Givens:
    """Make a logistic regression on standard normal columns and an intercept."""
    rng = np.random.default_rng(1)
    x = np.column_stack((rng.standard_normal((rows, width - 1)), np.ones(rows)))
    return _logistic(x, 2 * rng.standard_normal(width) / np.sqrt(width))


def collinear_design(levels: int, rows: int) -> Givens:
    """Make a logistic regression on three full sets of indicators.

    Each set sums to the intercept; some levels have no rows.
    """
    rng = np.random.default_rng(2)
    shares = 1 / np.arange(1.0, levels + 1) ** 3
    sets = [np.eye(levels)[rng.choice(levels, rows, p=shares / shares.sum())] for _ in range(3)]
    x = np.column_stack((*sets, np.ones(rows)))
    return _logistic(x, rng.standard_normal(x.shape[1]))


def _logistic(x: Array64, theta: Array64) -> Givens:
    width = x.shape[1]
    model = LogisticRegression(width)
    encoders = tuple(ColumnEncoder(Column(f"x{index}", "real", -1.0, 1.0)) for index in range(width - 1))
    columns = [column for encoder in encoders for column in encoder.columns]
    design = Design(encoders, None, (*columns, DesignColumn("intercept", None, {"kind": "constant"})))
    y = model.sample_targets(np.random.default_rng(3), x, theta)
    return _of(model, design, NormalPrior(np.ones(width)), x, y)


def _of(model: Model, design: Design, prior: Prior, x: Array64, y: Array64) -> Givens:
    rows, weights = model.fold(x, y), np.ones(len(x))
    mean = fit_laplace(model, rows, weights, prior, np.zeros(model.dimension), tolerance=1e-20).mean
    return Givens(model, design, prior, mean, model.expand(rows, weights, mean).information + prior.precision(mean))


def plain_divergence(givens: Givens, u: Array64, y: Array64 | None, weight: Array64) -> float:
    """Compute the divergence by the textbook's formula.

    The mode is found by plain Newton steps from the prior's mean.
    """
    model, prior = givens.model, givens.prior
    rows = model.fold(u, np.zeros(len(u)) if y is None else y)
    mode = fit_laplace(model, rows, weight, prior, np.zeros(model.dimension), tolerance=1e-16).mean
    precision = model.expand(rows, weight, mode).information + prior.precision(mode)
    gap, seen = mode - givens.mean, np.linalg.solve(precision, givens.precision)
    determinants = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(givens.precision)[1]
    return 0.5 * float(gap @ givens.precision @ gap + np.trace(seen) - len(gap) + determinants)
