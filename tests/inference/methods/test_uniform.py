"""Uniform subsampling of public tables."""

import numpy as np

from app.inference.core.plan import PlanRequest
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.inference.registry import find_method
from app.inference.runner import run_public
from tests.inference.support import SPEC, facts, table


def test_points_are_present_rows_with_even_weights() -> None:
    source, declared = table(50, slots=80), facts(80, sensitivity="public")
    source.columns["_present"][10] = 0
    plan = find_method("uniform").plan(PlanRequest("uniform", 49, SPEC), declared)
    points = run_public(plan, declared, source, make_monte_carlo_generator())
    np.testing.assert_array_equal(points.weight, 1.0)
    ages = source.columns["age"][:50]
    np.testing.assert_allclose(np.sort(points.u[:, 0] * 30 + 50), np.sort(np.delete(ages, 10)), atol=1e-4)


def test_without_rows_there_is_no_weight() -> None:
    declared = facts(80, sensitivity="public")
    plan = find_method("uniform").plan(PlanRequest("uniform", 3, SPEC), declared)
    points = run_public(plan, declared, table(0, slots=80), make_monte_carlo_generator())
    assert not np.any(points.weight)
