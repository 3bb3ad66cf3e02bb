"""The projection onto declared bounds: inside, nearest, and idempotent."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from app.inference.core.bounds import project
from app.inference.core.facts import Column
from app.inference.core.model import Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from tests.inference.support import COLUMNS, SPEC, WIDTH, facts

DESIGN = make_problem(SPEC, facts(10)).design
POINTS = st.lists(st.lists(st.floats(-5, 5), min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=5)


@given(POINTS)
def test_projections_are_inside_and_idempotent(points: list[list[float]]) -> None:
    projected = project(DESIGN, np.array(points))
    assert np.all(np.abs(projected) <= 1)
    shares = projected[:, 2:4]
    assert shares.min() >= 0
    assert shares.sum(axis=1).max() <= 1 + 1e-12
    assert np.all(projected[:, -1] == 1)
    np.testing.assert_allclose(project(DESIGN, projected), projected, atol=1e-12)


@given(POINTS)
def test_no_possible_row_is_nearer_than_the_projection(points: list[list[float]]) -> None:
    """Variational inequality of a projection onto a convex set: no possible row is on the far side of the result."""
    u = np.array(points)
    u[:, -1] = 1
    projected = project(DESIGN, u)
    rows = DESIGN.sample(np.random.default_rng(0), 200)
    assert np.all((u - projected) @ rows.T - np.vecdot(u - projected, projected)[:, None] <= 1e-9)


def test_projected_shares_match_an_independent_optimiser() -> None:
    colour = make_problem(replace(SPEC, features=("colour",)), facts(10)).design

    def distance(v: Array64, point: Array64) -> float:
        return float(np.sum((v - point) ** 2))

    for point in np.random.default_rng(1).normal(0, 1.5, (20, 2)):
        best = minimize(
            distance,
            np.full(2, 0.3),
            args=(point,),
            bounds=[(0, 1)] * 2,
            constraints={"type": "ineq", "fun": lambda v: 1 - v.sum()},
            options={"ftol": 1e-14},
        ).x
        np.testing.assert_allclose(project(colour, np.array([[*point, 1.0]]))[0, :2], best, atol=1e-6)


def test_design_rows_are_unchanged_and_constants_become_zero() -> None:
    rows = DESIGN.sample(np.random.default_rng(2), 50)
    np.testing.assert_array_equal(project(DESIGN, rows), rows)
    declared = replace(facts(10), columns=(*COLUMNS, Column("k", "real", 3.0, 3.0)))
    constant = make_problem(ModelSpec(SPEC.family, ("k",), "ill"), declared).design
    np.testing.assert_array_equal(project(constant, np.array([[0.7, 5.0]])), [[0, 1]])
