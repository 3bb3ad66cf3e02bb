"""Shifted and scaled columns and bounds give the same posterior."""

from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from randomgen import ChaCha

from app.errors import InvalidRequest
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.release import Pseudocoreset
from app.inference.models.targets import is_resolved
from app.inference.post.laplace import Laplace
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import find_method
from app.inference.runner import run_points
from support.divergence import compute_divergence
from support.surrogate_tables import Drawn
from support.table import Table
from tests.inference.populations import posterior

SLOTS: Final = 800
METHODS: Final = ("dp-psvi-surrogate", "dp-psvi", "dp-vi")
STEPS: Final = {"dp-psvi": 60, "dp-vi": 60}
BOUNDS: Final = ((2_459_000.0, 2_459_001.0), (1e8, 1e8 + 10), (1.7e12, 1.7e12 + 3.6e6), (0.0, 1e60), (-1e-60, 1e-60))
NEARLY: Final = 0.05
"""The divergence in nats that rounding may cause."""


def _coordinates() -> Array64:
    """Two features and a target, from -1 to 1, ``(SLOTS, 3)``."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (SLOTS, 2))
    return np.column_stack((x, np.clip(0.4 * x[:, 0] - 0.2 * x[:, 1] + 0.1 * rng.standard_normal(SLOTS), -1, 1)))


def _declared(lower: float, upper: float) -> DeclaredFacts:
    columns = tuple(Column(name, "real", lower, upper) for name in ("a", "b", "y"))
    return DeclaredFacts(columns, SLOTS, {"kind": "row"}, "private", 1e-6)


def _table(lower: float, upper: float) -> Table:
    values = upper / 2 + lower / 2 + (upper / 2 - lower / 2) * _coordinates()
    columns = {name: np.clip(values[:, place], lower, upper) for place, name in enumerate(("a", "b", "y"))}
    return Table({**columns, "_present": np.ones(SLOTS, dtype=np.uint8)})


def _release(name: str, spec: ModelSpec, declared: DeclaredFacts, source: Table) -> Pseudocoreset:
    chosen = find_method(name)
    mechanism = Mechanism(0.5, 1.0, STEPS[name]) if name in STEPS else None
    plan = chosen.plan(PlanRequest(name, 12, spec, {}, mechanism, None if mechanism else 2.0), declared)
    model, sampling = make_problem(spec, declared).model, np.random.Generator(ChaCha(key=0))
    oracle = ClippedGaussianOracle(model, plan, declared, source, noise=Drawn(0), sampling=sampling)
    return run_points(plan, declared, oracle, np.random.default_rng(0), lambda _: None)


def _measure_divergence(
    name: str, family: str, lower: float, upper: float, *, noise_scale: float | None = None
) -> float:
    """The divergence in nats between releases with these bounds and with -1 and 1."""
    found = _find_posterior(name, family, lower, upper, noise_scale)
    return compute_divergence(found, _find_posterior(name, family, -1.0, 1.0, noise_scale))


@cache
def _find_posterior(name: str, family: str, lower: float, upper: float, noise_scale: float | None) -> Laplace:
    """The posterior of a release in coordinates."""
    target = None if family == "gaussian-mean" else "y"
    half = upper / 2 - lower / 2 if target else 1.0
    scale = None if noise_scale is None else noise_scale * half
    spec = ModelSpec(family, ("a", "b"), target, noise_scale=scale)
    declared, source = _declared(lower, upper), _table(lower, upper)
    points, problem = _release(name, spec, declared, source), make_problem(spec, declared)
    y = np.zeros(len(points.u)) if points.y is None else problem.design.encode_targets(points.y)
    return posterior(problem, points.u, y, points.weight)


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "bounds", [*BOUNDS[-3:], *(pytest.param(each, marks=pytest.mark.sweep) for each in BOUNDS[:-3])], ids=str
)
def test_release_of_shifted_targets_is_that_of_coordinates(name: str, bounds: tuple[float, float]) -> None:
    assert _measure_divergence(name, "linear-regression", *bounds) < NEARLY
    assert _measure_divergence(name, "linear-regression", *bounds, noise_scale=0.1) < NEARLY


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_release_of_shifted_features_is_that_of_coordinates(name: str, bounds: tuple[float, float]) -> None:
    assert _measure_divergence(name, "gaussian-mean", *bounds) < NEARLY


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(
    center=st.floats(-1e12, 1e12),
    width=st.floats(-6, 12).map(lambda power: 10.0**power),
    name=st.sampled_from(METHODS),
    family=st.sampled_from(("linear-regression", "gaussian-mean")),
)
def test_any_shift_and_scale_gives_the_same_posterior(center: float, width: float, name: str, family: str) -> None:
    lower, upper = center - width / 2, center + width / 2
    if is_resolved(lower, upper):
        assert _measure_divergence(name, family, lower, upper) < NEARLY
    elif family == "linear-regression" and lower < upper:
        with pytest.raises(InvalidRequest):
            make_problem(ModelSpec(family, ("a",), "y"), _declared(lower, upper))


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_encoded_targets_are_centred_in_double_precision(bounds: tuple[float, float]) -> None:
    design = make_problem(ModelSpec("linear-regression", ("a", "b"), "y"), _declared(*bounds)).design
    _, y, present = design.encode(_table(*bounds).gather(np.arange(SLOTS)))
    assert present.all()
    np.testing.assert_allclose(y, _coordinates()[:, 2], atol=1e-6)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_released_targets_return_to_the_units_of_the_table(bounds: tuple[float, float]) -> None:
    facts = replace(_declared(*bounds), sensitivity="public")
    spec, source = ModelSpec("linear-regression", ("a", "b"), "y"), _table(*bounds)
    chosen = find_method("uniform")
    plan = chosen.plan(PlanRequest("uniform", 9, spec), facts)
    released = chosen.build(plan, facts, source, np.random.default_rng(0)).y  # type: ignore[attr-defined]
    nearest = np.abs(released[:, None] - source.columns["y"]).min(axis=1)
    assert nearest.max() <= 1e-9 * (bounds[1] - bounds[0])


def test_large_integers_are_distinguished() -> None:
    """Integers up to 2^53 in magnitude are distinguished, for every width of the bounds."""
    most = 2.0**53 - 1
    facts = replace(_declared(0, 1), columns=(Column("k", "integer", most - 8, most), Column("y", "binary")))
    design = make_problem(ModelSpec("logistic-regression", ("k",), "y"), facts).design
    table = Table({"k": most - np.arange(9.0), "y": np.zeros(9), "_present": np.ones(9, dtype=np.uint8)})
    results = design.encode(table.gather(np.arange(9)))[0]
    np.testing.assert_array_equal(results[:, 0], 1 - np.arange(9) / 4)
