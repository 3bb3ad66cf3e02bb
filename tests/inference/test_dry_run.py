"""W15: the dry run finds faults that every table has; degenerate designs do not fail."""

from typing import Any

import numpy as np
import pytest

from app.inference import dry_run
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, MechanismPlan, ModelSpec, PlanRequest
from app.inference.core.release import GroupWeights, Pseudocoreset
from app.inference.dry_run import NullRows
from app.inference.private_zone.queries import blocks
from app.inference.registry import find_family, find_method, find_private_method, list_families, list_methods, takes
from workers.computation import compute

COLUMNS = (
    Column("yes", "binary"),
    Column("dose", "real", -2.0, 10.0),
    Column("visits", "integer", 0.0, 30.0),
    Column("group", "categorical", categories=("a", "b", "c")),
    Column("site", "categorical", categories=("only",)),
    Column("ward", "categorical", categories=("only",)),
    Column("level", "real", 0.0, 1.0),
    Column("narrow", "real", 0.0, 1e-100),
    Column("wide", "real", -1e300, 1e300),
    Column("person", "integer", 0.0, 1000.0),
)
TARGETS = {
    "logistic-regression": "yes",
    "probit-regression": "yes",
    "linear-regression": "dose",
    "student-t-regression": "dose",
    "poisson-regression": "visits",
    "negative-binomial-regression": "visits",
    "multinomial-logistic": "group",
    "gaussian-mean": None,
    "gaussian": None,
}
MECHANISMS: dict[str, Mechanism | None] = {
    "dp-psvi-surrogate": None,
    "dp-psvi": Mechanism(30.0, 0.5, 2),
    "dp-vi": Mechanism(30.0, 0.5, 10),
    "vips": None,
    "dp-groups": None,
}
PARAMETERS: dict[str, dict[str, Any]] = {"dp-groups": {"groups": ["group", "yes"]}}
NO_INTERCEPT = {"gaussian-mean", "gaussian"}
PAIRS = [
    (method_id, family)
    for method_id in MECHANISMS
    for family in TARGETS
    if takes(find_method(method_id), find_family(family))
]
UNITS: dict[str, dict[str, Any]] = {
    "row": {"kind": "row"},
    "people": {"kind": "column", "column": "person", "max_rows": 3},
}
DESIGNS = {
    "no column": ("site",),
    "no columns of two": ("site", "ward"),
    "one column": ("level",),
    "one and none": ("level", "site"),
    "narrow": ("narrow",),
    "wide": ("wide",),
}
CASES = [
    (each, family, unit, design)
    for each, family in PAIRS
    for unit in UNITS
    for design in DESIGNS
    if family not in NO_INTERCEPT or "site" not in DESIGNS[design]
]


def _planned(
    method_id: str, family: str, unit: str, features: tuple[str, ...], *, slots: int = 40, size: int = 2
) -> tuple[MechanismPlan, DeclaredFacts]:
    facts = DeclaredFacts(COLUMNS, slots, UNITS[unit], "private", 1e-6)
    spec = ModelSpec(family, features, TARGETS[family])
    mechanism = MECHANISMS[method_id]
    noise = 30.0 if mechanism is None else None
    chosen = PARAMETERS.get(method_id, {})
    request = PlanRequest(method_id, size, spec, chosen, mechanism=mechanism, noise_multiplier=noise)
    return find_method(method_id).plan(request, facts), facts


def test_the_grid_holds_every_private_method_and_family() -> None:
    assert set(MECHANISMS) == {each.id for each in list_methods() if each.private}
    own_columns = {"latent-dirichlet-allocation", "sigmoid-belief-network"}  # tests/inference/conjugate dry-runs them
    assert set(TARGETS) | own_columns == {each.name for each in list_families()}


@pytest.mark.long
@pytest.mark.parametrize(("method_id", "family", "unit", "design"), CASES)
def test_degenerate_design_passes_the_dry_run(method_id: str, family: str, unit: str, design: str) -> None:
    """W15: the designs are valid, so they are carried out."""
    dry_run.carry_out(*_planned(method_id, family, unit, DESIGNS[design]), to_the_end=False)


@pytest.mark.long
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("method_id", "family"), [pair for pair in PAIRS if pair[1] not in NO_INTERCEPT])
def test_design_without_columns_runs_to_its_end(method_id: str, family: str, unit: str) -> None:
    """W15: an intercept alone is a model; every planned query is asked, and the points are finite."""
    plan, facts = _planned(method_id, family, unit, ("site",), slots=2000)
    points, executed = compute(plan, facts, NullRows(facts), lambda _: None)
    assert executed == plan.events
    assert [column.name for column in points.design] == ["intercept"]
    if isinstance(points, GroupWeights):
        assert points.weight.shape == (6,)
        return
    assert isinstance(points, Pseudocoreset)
    assert np.isfinite(points.weight).all()
    assert np.isfinite(points.u).all()


@pytest.mark.parametrize("method_id", MECHANISMS)
def test_dry_run_asks_every_planned_kind_of_query(method_id: str) -> None:
    plan, facts = _planned(method_id, "logistic-regression", "row", ("level",))
    short = find_private_method(method_id).shorten(plan, facts)
    assert {query.kind for query in short.queries} == {query.kind for query in plan.queries}
    assert short.steps == sum(query.count for query in short.queries)


@pytest.mark.parametrize("method_id", MECHANISMS)
def test_fault_among_null_rows_fails_the_dry_run(method_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """W15: a query that fails on every table fails before the charge."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(blocks, "iterate_unit_blocks", fail)
    plan, facts = _planned(method_id, "logistic-regression", "people", ("level",))
    for name in ("lengths", "groups"):
        monkeypatch.setattr(f"app.inference.private_zone.queries.{name}.iterate_unit_blocks", fail)
    with pytest.raises(ZeroDivisionError):
        dry_run.carry_out(plan, facts, to_the_end=False)


def test_points_enter_one_by_one_in_a_dry_run() -> None:
    facts = DeclaredFacts(COLUMNS, 40, UNITS["row"], "private", 1e-6)
    spec, chosen = ModelSpec("logistic-regression", ("level",), "yes"), {"schedule": "incremental"}
    plan = find_method("dp-psvi").plan(PlanRequest("dp-psvi", 5, spec, chosen, Mechanism(30.0, 1.0, 50)), facts)
    short = find_private_method("dp-psvi").shorten(plan, facts)
    assert (short.size, short.steps) == (2, 2)
    dry_run.carry_out(plan, facts, to_the_end=True)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "family", [name for method, name in PAIRS if method == "dp-psvi" and TARGETS[name] != "visits"]
)
def test_beta_passes_the_dry_run_to_its_end(family: str, unit: str) -> None:
    """W15: a decorated model is asked another kind of query, on null rows too."""
    facts = DeclaredFacts(COLUMNS, 40, UNITS[unit], "private", 1e-6)
    request = PlanRequest(
        "dp-psvi", 5, ModelSpec(family, ("level",), TARGETS[family]), {"beta": 0.5}, MECHANISMS["dp-psvi"]
    )
    plan = find_method("dp-psvi").plan(request, facts)
    assert {query.kind for query in plan.queries} == {"robust_potential_sum"}
    dry_run.carry_out(plan, facts, to_the_end=True)


@pytest.mark.parametrize("method_id", MECHANISMS)
def test_dry_run_to_the_end_meets_a_fault_of_the_fit(method_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """W15: a worker finds it before it opens the reservation; a price does not wait for a fit."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(find_private_method(method_id)), "finish", fail)
    plan, facts = _planned(method_id, "logistic-regression", "row", ("level",))
    dry_run.carry_out(plan, facts, to_the_end=False)
    with pytest.raises(ZeroDivisionError):
        dry_run.carry_out(plan, facts, to_the_end=True)
