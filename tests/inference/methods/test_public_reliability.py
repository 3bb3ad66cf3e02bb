"""Releases of public tables are compared with the posterior of the whole table."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.core import reasons
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.release import CALIBRATED, Grade
from app.inference.methods.psvi.residuals import Points
from app.inference.methods.public_reliability import Comparison, compare_with_table, judge_comparison
from app.inference.methods.public_table import PublicTable
from support.divergence import compute_divergence
from tests.inference.populations import DECLARED, SPECS, population, posterior

PUBLIC = DeclaredFacts(DECLARED.columns, DECLARED.slots, DECLARED.unit, "public")


def _rows(spec: ModelSpec) -> tuple[PublicTable, Points]:
    """The table, and points that are all of its rows."""
    problem = make_problem(spec, PUBLIC)
    table = PublicTable(population(), problem.design)
    x, y = table.read(np.arange(table.count))
    return table, Points(x.astype(np.float64), y.astype(np.float64), np.ones(table.count))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
def test_all_rows_have_the_posterior_of_the_table(spec: ModelSpec) -> None:
    table, points = _rows(spec)
    found = compare_with_table(make_problem(spec, PUBLIC), table, points)
    assert max(found.kl, found.shift) < 1e-6
    assert found.learned > 0.2


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.family}-{spec.noise_scale}")
def test_the_divergence_is_that_of_both_laplace_approximations(spec: ModelSpec) -> None:
    """The points are nine in ten rows."""
    problem, (table, points) = make_problem(spec, PUBLIC), _rows(spec)
    fewer = replace(points, weights=np.where(np.arange(table.count) % 10, 10 / 9, 0.0))
    found = compare_with_table(problem, table, fewer)
    exact = posterior(problem, points.u, points.y, points.weights)
    near = posterior(problem, fewer.u, fewer.y, fewer.weights)
    assert found.kl == pytest.approx(compute_divergence(near, exact), rel=0.1)
    shift = exact.factor.T @ (near.mean - exact.mean)
    assert found.shift == pytest.approx(0.5 * shift @ shift, rel=0.1)
    assert found.learned == pytest.approx(0.5 * np.sum(np.square(exact.factor.T @ exact.mean)), rel=0.05)


def test_points_without_a_mode_are_not_usable() -> None:
    problem, (table, points) = make_problem(SPECS[0], PUBLIC), _rows(SPECS[0])
    found = compare_with_table(problem, table, replace(points, weights=np.full(table.count, np.inf)))
    assert found.kl == np.inf
    assert judge_comparison(found).grade is Grade.NOT_USABLE


@pytest.mark.parametrize(
    ("kl", "shift", "grade"),
    [(1.0, 1.0, Grade.CALIBRATED), (1.01, 5.0, Grade.CENTRE_ONLY), (6.0, 5.01, Grade.NOT_USABLE)],
)
def test_the_grade_follows_divergence_and_shift(kl: float, shift: float, grade: Grade) -> None:
    found = judge_comparison(Comparison(kl, shift, learned=10.0))
    assert found.grade is grade
    assert found == CALIBRATED or found.reasons == (reasons.POINTS_DIFFER,)
    assert judge_comparison(Comparison(np.nan, np.nan, np.nan)).grade is Grade.NOT_USABLE
