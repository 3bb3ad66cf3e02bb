"""Every method on designs with terms: usable points, and a posterior close to the full one."""

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import pytest

from app.inference.conjugate import make_run_problem
from app.inference.core.bounds import project
from app.inference.core.designs import Feature, Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.inference.core.problems import Problem, make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.core.row_source import PRESENT
from app.inference.dry_run import carry_out
from app.inference.post.laplace import Laplace
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.registry import find_method, list_methods
from app.inference.runner import run_points, run_public
from support.divergence import compute_divergence
from support.table import Table
from tests.inference.core.designs.features import LAYERS, TERMS, draw_table, make_facts
from tests.inference.populations import posterior
from tests.inference.support import NullNoise

SLOTS: Final = 4000
FEATURES: Final[tuple[Feature, ...]] = (
    "smoker",
    Spline("age", 4),
    Interaction(("sex", "hours")),
    Interaction(("sex", "job")),
    Polynomial("cost", 2),
)
SPEC: Final = ModelSpec("logistic-regression", FEATURES, "ill")
PRIVATE: Final = [each.id for each in list_methods() if each.private]
POINTS: Final = [name for name in PRIVATE if name != "dp-groups"]
PUBLIC: Final = [each.id for each in list_methods() if not each.private]


@cache
def source() -> Table:
    """Make rows whose label depends on a curve of age and on interactions."""
    rng = np.random.default_rng(4)
    table = draw_table(rng, SLOTS)
    age, hours = (table["age"] - 50) / 30, table["hours"] / 50 - 1
    predictor = 1.5 * np.cos(2 * age) + (table["sex"] == 1) * (hours - 0.5 * (table["job"] == 2)) - 0.5
    table["ill"] = (rng.random(SLOTS) < 1 / (1 + np.exp(-predictor))).astype(float)
    table[PRESENT][-100:] = 0
    for values in table.values():
        values[-100:] = 0
    return Table(table)


@cache
def exact() -> Laplace:
    """Compute the full posterior of :data:`SPEC`."""
    problem = make_problem(SPEC, make_facts(SLOTS))
    x, y, present = problem.design.encode(source().gather(np.arange(SLOTS)))
    return posterior(problem, x.astype(np.float64), y, present.astype(np.float64))


def _measure(problem: Problem, points: Pseudocoreset) -> float:
    assert points.y is not None
    return compute_divergence(posterior(problem, points.u, points.y, points.weight), exact())


def _release(method: str, spec: ModelSpec, size: int, **parameters: object) -> Pseudocoreset:
    private = find_method(method).private
    facts = make_facts(SLOTS, sensitivity="private" if private else "public")
    mechanism = Mechanism(1.0, 1.0, 40) if private and method != "dp-psvi-surrogate" else None
    noise = 1e-3 if private and mechanism is None else None
    plan = find_method(method).plan(PlanRequest(method, size, spec, parameters, mechanism, noise), facts)
    rng = np.random.default_rng(0)
    if not private:
        return run_public(plan, facts, source(), rng)
    model, sampling = make_run_problem(plan, facts).model, make_sampling_generator()
    oracle = ClippedGaussianOracle(model, plan, facts, source(), noise=NullNoise(), sampling=sampling)
    return run_points(plan, facts, oracle, rng, lambda _: None)


def _check(points: Pseudocoreset, problem: Problem, size: int) -> None:
    assert points.u.shape == (size, problem.design.width)
    assert np.all(np.isfinite(points.u))
    assert np.all(points.u[:, -1] == 1)
    assert np.all(points.weight >= 0)
    assert points.design == problem.design.columns


@pytest.mark.slow
@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.long
def test_a_plan_with_terms_is_carried_out_on_null_rows(method: str, name: str) -> None:
    """W15: a dry run of every private method ends for every kind of term."""
    spec = replace(SPEC, features=TERMS[name])
    mechanism = None if method in {"dp-psvi-surrogate", "dp-groups"} else Mechanism(5.0, 0.5, 5)
    chosen = {"groups": ["sex"]} if method == "dp-groups" else {}
    noise = 5.0 if mechanism is None else None
    plan = find_method(method).plan(PlanRequest(method, 30, spec, chosen, mechanism, noise), make_facts(SLOTS))
    carry_out(plan, make_facts(SLOTS), to_the_end=True)


@pytest.mark.slow
@pytest.mark.parametrize("method", POINTS)
def test_a_private_method_learns_terms_without_noise(method: str) -> None:
    problem = make_problem(SPEC, make_facts(SLOTS))
    points = _release(method, SPEC, 40)
    _check(points, problem, 40)
    prior = compute_divergence(posterior(problem, points.u, np.ones(40), np.zeros(40)), exact())
    assert _measure(problem, points) < (0.1 if method == "dp-psvi-surrogate" else 0.5 * prior)


@pytest.mark.long
@pytest.mark.parametrize(
    "method", [pytest.param(each, marks=[pytest.mark.sweep] * (each == "beta-cores")) for each in PUBLIC]
)
def test_a_public_method_takes_terms(method: str) -> None:
    parameters = {"iterations": 30} if "psvi" in method or method == "sparse-vi" else {}
    spec = replace(
        SPEC, features=(*FEATURES, Fourier(("age", "hours"), 4, 1.0, 1), Network(("age", "hours", "job"), LAYERS))
    )
    problem = make_problem(spec, make_facts(SLOTS))
    points = _release(method, spec, 60, **parameters)
    _check(points, problem, 60)
    assert points.y is not None
    if method not in {"psvi", "incremental-psvi"}:  # points are rows, and lie on the curves of their terms
        rows = problem.design.encode(source().gather(np.arange(SLOTS)))[0]
        assert {row.tobytes() for row in points.u.astype(np.float32)} <= {row.tobytes() for row in rows} | {
            np.eye(problem.design.width, dtype=np.float32)[-1].tobytes()
        }


@pytest.mark.long
@pytest.mark.parametrize("method", ["dp-psvi-surrogate", "dp-psvi", pytest.param("psvi", marks=pytest.mark.sweep)])
def test_points_stay_within_the_bounds_of_terms(method: str) -> None:
    """Polynomials and products have other ranges than columns; the columns of a spline are shares."""
    points = _release(method, SPEC, 40, within_bounds=True)
    design = make_problem(SPEC, make_facts(SLOTS)).design
    np.testing.assert_allclose(project(design, points.u), points.u, atol=1e-9)
    assert design.lower[design.blocks[-1]].tolist() == [-1.0, -0.5]


def _distance(a: Array64, b: Array64) -> Array64:
    return np.asarray(np.linalg.norm(a - b, axis=1))


@pytest.mark.parametrize("name", TERMS)
def test_projection_is_the_nearest_point_within_bounds(name: str) -> None:
    design, rng = make_problem(replace(SPEC, features=TERMS[name]), make_facts()).design, np.random.default_rng(1)
    u = np.column_stack([rng.normal(0, 1.5, (200, design.width - 1)), np.ones(200)])
    nearest = project(design, u)
    np.testing.assert_allclose(project(design, nearest), nearest, atol=1e-12)
    for rows in (design.sample(rng, 200), project(design, design.sample(rng, 200) + 0.1 * rng.normal(size=u.shape))):
        np.testing.assert_allclose(project(design, rows), rows, atol=1e-9)
        assert np.all(_distance(u, nearest) <= _distance(u, rows) + 1e-9)
