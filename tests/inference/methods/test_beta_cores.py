"""``beta-cores``: outliers are neither chosen nor followed, and requests without a beta-likelihood are refused."""

from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan, ModelSpec, PlanRequest, PriorSpec
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.methods.psvi.beta_cores import BETA
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.psvi.residuals.choice import make_residuals
from app.inference.methods.public_table import PublicTable
from app.inference.models.robust import LEAST_BETA, make_robust
from app.inference.post.laplace import Laplace, fit_laplace
from app.inference.registry import find_method
from app.inference.runner import run_public
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.populations import DECLARED, SPECS, population

N, BOUND = 400, 16.0
PUBLIC = DeclaredFacts(DECLARED.columns, DECLARED.slots, DECLARED.unit, "public")
NAMES = ("a", "b", "c")
SPEC = ModelSpec("gaussian-mean", NAMES, None, PriorSpec(1.0), 1 / BOUND)
FACTS = DeclaredFacts(tuple(Column(name, "real", -BOUND, BOUND) for name in NAMES), N, {"kind": "row"}, "public")


def _rows(outliers: int) -> Array64:
    """Normal rows; the first ``outliers`` are ten standard deviations away in every column."""
    values = np.random.default_rng(3).standard_normal((N, len(NAMES)))
    values[:outliers] += 10
    return np.clip(values, -BOUND, BOUND)


def _plan(method_id: str, spec: ModelSpec, facts: DeclaredFacts, size: int, **parameters: Any) -> MechanismPlan:
    return find_method(method_id).plan(PlanRequest(method_id, size, spec, parameters), facts)


def _run(method_id: str, outliers: int, **parameters: Any) -> Pseudocoreset:
    values = _rows(outliers)
    source = Table({**dict(zip(NAMES, values.T, strict=True)), "_present": np.ones(N, dtype=np.uint8)})
    plan = _plan(method_id, SPEC, FACTS, 15, iterations=60, minibatch=N, candidates=N, **parameters)
    return run_public(plan, FACTS, source, np.random.default_rng(1))


def _posterior(u: Array64, weight: Array64) -> Laplace:
    model, _, prior = make_problem(SPEC, FACTS)
    return fit_laplace(model, np.asarray(model.fold(u, np.zeros(len(u)))), weight, prior, np.zeros(3))


def _far(points: Pseudocoreset) -> float:
    """The share of weight beyond five standard deviations."""
    return float(points.weight[points.u.mean(axis=1) > 5 / BOUND].sum() / points.weight.sum())


@pytest.mark.parametrize("outliers", [0, 60, 120])
@pytest.mark.long
def test_outliers_have_no_weight_and_the_clean_posterior_is_found(outliers: int) -> None:
    clean = _posterior(_rows(outliers)[outliers:] / BOUND, np.ones(N - outliers))
    points = _run("beta-cores", outliers)
    assert _far(points) == 0
    assert compute_divergence(_posterior(points.u, points.weight), clean) < 5


def test_outlier_with_nearly_constant_potentials_has_no_correlation() -> None:
    """Divided by their tiny deviation, they would point in one direction and be chosen."""
    problem = make_problem(SPEC, FACTS)
    values = _rows(60)
    source = Table({**dict(zip(NAMES, values.T, strict=True)), "_present": np.ones(N, dtype=np.uint8)})
    table, rng = PublicTable(source, problem.design), np.random.default_rng(5)
    guide = problem._replace(model=make_robust(problem.model, 0.07))
    residuals = make_residuals(guide, table, rng, draws=50, minibatch=N)
    x, y = table.read(np.arange(N))
    start = Points(x[100:110].astype(np.float64), y[100:110], np.full(10, 30.0))
    correlation = np.abs(residuals.on(start, x.astype(np.float64), y).correlation(x.astype(np.float64), y))
    assert correlation[:60].max() < 1e-2 * np.median(correlation[60:])


def test_sparse_vi_follows_the_outliers() -> None:
    """The comparison shows that the table would mislead a method without beta."""
    clean = _posterior(_rows(120)[120:] / BOUND, np.ones(N - 120))
    points = _run("sparse-vi", 120)
    assert _far(points) > 0.1
    assert compute_divergence(_posterior(points.u, points.weight), clean) > 1000


def test_release_is_compared_with_the_beta_posterior_of_the_table() -> None:
    """The outliers' pull is not a fault of the points; a beta for which the points are wrong is stated."""
    assert _run("beta-cores", 120).diagnostics["fit_kl"] < 5
    plain = _run("sparse-vi", 120)
    assert plain.diagnostics["fit_kl"] < 5  # it represents the dirty table


@pytest.mark.long
def test_small_beta_chooses_as_sparse_vi_does() -> None:
    """On a clean logistic table; a larger beta is coarser, but far better than random rows."""

    def fit(method: str, **parameters: Any) -> float:
        plan = _plan(method, SPECS[0], PUBLIC, 15, **parameters)
        return float(run_public(plan, PUBLIC, population(), np.random.default_rng(2)).diagnostics["fit_kl"])

    steps = {"iterations": 40, "minibatch": 200}
    plain, random = fit("sparse-vi", **steps), fit("uniform")
    assert fit("beta-cores", beta=LEAST_BETA, **steps) < 1.3 * plain
    assert fit("beta-cores", beta=0.3, **steps) < 0.2 * random


@pytest.mark.parametrize("family", ["poisson-regression", "negative-binomial-regression"])
@pytest.mark.parametrize("parameters", [{}, {"beta": 0.5}])
def test_models_of_counts_are_refused_in_words(family: str, parameters: dict[str, Any]) -> None:
    spec = next(each for each in SPECS if each.family == family)
    with pytest.raises(InvalidRequest) as caught:
        _plan("beta-cores", spec, PUBLIC, 5, **parameters)
    assert caught.value.faults[0].pointer == "/parameters/beta"
    assert "counts" in caught.value.faults[0].message


@pytest.mark.parametrize("beta", [0, -0.1, 1.01, float("nan"), float("inf"), "0.2", True, None])
def test_beta_out_of_range_is_refused(beta: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        _plan("beta-cores", SPEC, FACTS, 5, beta=beta)
    assert caught.value.faults[0].pointer == "/parameters/beta"


def test_default_beta_of_a_gaussian_mean_falls_with_its_columns() -> None:
    assert _plan("beta-cores", SPECS[0], PUBLIC, 5).parameters["beta"] == BETA.default == 0.2
    assert _plan("beta-cores", SPEC, FACTS, 5).parameters["beta"] == pytest.approx(0.2 / 3)
    assert _plan("beta-cores", SPEC, FACTS, 5, beta=0.2).parameters["beta"] == 0.2
