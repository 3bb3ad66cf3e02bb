"""``beta-cores`` of groups and batches: whole sets are chosen, clean ones first, and released with their rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.methods.psvi import groups
from app.inference.methods.psvi.groups import grow_sets
from app.inference.methods.public import open_table
from app.inference.registry import find_method
from app.inference.runner import run_public
from support.table import Table
from tests.inference.support import SPEC, facts, table

ROWS = 900
FACTS = facts(ROWS, sensitivity="public")
QUICK = {"iterations": 40, "posterior_draws": 30, "minibatch": 300}


def plan(size: int = 3, declared: DeclaredFacts = FACTS, **parameters: Any) -> MechanismPlan:
    return find_method("beta-cores").plan(PlanRequest("beta-cores", size, SPEC, QUICK | parameters), declared)


def release(source: Table, size: int = 3, seed: int = 1, **parameters: Any) -> Pseudocoreset:
    return run_public(plan(size, **parameters), FACTS, source, np.random.default_rng(seed))


def design_rows(source: Table) -> set[bytes]:
    problem = grow_sets(
        plan(1, groups=["smoker"], iterations=1), FACTS, source, np.random.default_rng(0), beta=0.2
    ).problem
    return {
        row.tobytes() for row in problem.design.encode(source.gather(np.arange(source.slots)))[0].astype(np.float32)
    }


def test_a_release_has_all_rows_of_the_chosen_groups() -> None:
    source = table(ROWS)
    points = release(source, 2, groups=["colour", "smoker"])
    weights = points.diagnostics["weight_of_groups"]
    assert 0 < len(weights) <= 2
    sizes = {}
    for label in weights:
        colour, smoker = label.removeprefix("colour=").split(", smoker=")
        chosen = source.columns["colour"] == ("red", "green", "blue").index(colour)
        sizes[label] = int((chosen & (source.columns["smoker"] == (smoker == "true"))).sum())
    assert len(points.weight) == points.diagnostics["rows"] == sum(sizes.values())
    found = {round(float(weight), 6): int((points.weight == weight).sum()) for weight in np.unique(points.weight)}
    assert sorted(found.values()) == sorted(sizes.values())
    assert {row.tobytes() for row in points.u.astype(np.float32)} <= design_rows(source)


@pytest.mark.long
def test_all_groups_represent_the_table() -> None:
    points = release(table(ROWS), 6, groups=["colour", "smoker"], iterations=200)
    total = points.weight.sum()
    assert 0.6 * ROWS < total < 1.4 * ROWS
    assert points.diagnostics["sets"] == len(points.diagnostics["weight_of_groups"])


@pytest.mark.parametrize("seed", range(3))
def test_a_group_of_wrong_labels_is_not_the_first_choice(seed: int) -> None:
    """It never was in 40 runs, and its correlation is negative."""
    source = table(ROWS, seed=seed)
    wrong = source.columns["colour"] == 2
    source.columns["ill"] = np.where(wrong, 1 - source.columns["ill"], source.columns["ill"])
    points = release(source, 1, seed=seed, groups=["colour"], beta=0.6)
    assert "colour=blue" not in points.diagnostics["weight_of_groups"]


def test_batches_are_random_sets_of_rows_of_the_table() -> None:
    source = table(ROWS)
    points = release(source, 4, batches=25, candidates=200)
    assert points.diagnostics["rows"] == len(points.weight) == 25 * points.diagnostics["sets"]
    assert 1 <= points.diagnostics["sets"] <= 4
    assert "weight_of_groups" not in points.diagnostics
    rows = [row.tobytes() for row in points.u.astype(np.float32)]
    assert set(rows) <= design_rows(source)


def test_large_groups_are_represented_by_random_rows_of_the_same_weight() -> None:
    source = table(ROWS)
    points = release(source, 1, groups=["smoker"], candidates=50)
    (weight,) = points.diagnostics["weight_of_groups"].values()
    (label,) = points.diagnostics["weight_of_groups"]
    count = int((source.columns["smoker"] == (label == "smoker=true")).sum())
    assert len(points.weight) == 50
    assert points.weight.sum() == pytest.approx(weight * count, rel=1e-3)


def test_a_release_has_a_bounded_number_of_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_POINTS", 60)
    points = release(table(ROWS), 3, groups=["colour"], candidates=1000)
    assert len(points.weight) <= 60


def test_an_empty_table_leaves_one_null_point() -> None:
    points = release(table(0, slots=ROWS), groups=["colour"])
    assert points.weight.tolist() == [0.0]
    assert points.diagnostics["sets"] == 0


def test_rows_of_people_and_null_rows_are_grouped_right() -> None:
    """Units may have several rows, and some of them may be null."""
    source = table(600, slots=ROWS)
    people = replace(FACTS, slots=300, unit={"kind": "column", "column": "person", "max_rows": 3})
    built = grow_sets(
        plan(6, people, groups=["colour", "smoker"]),
        people,
        Table(source.columns, 3),
        np.random.default_rng(0),
        beta=0.2,
    )
    for each in built.sets:
        colour, smoker = each.label.removeprefix("colour=").split(", smoker=")
        chosen = source.columns["colour"][:600] == ("red", "green", "blue").index(colour)
        chosen &= source.columns["smoker"][:600] == (smoker == "true")
        assert len(each.x) == chosen.sum()
        np.testing.assert_array_equal(each.y, source.columns["ill"][:600][chosen])


@pytest.mark.parametrize(
    ("parameters", "pointer"),
    [
        ({"groups": ["age"]}, "/parameters/groups/0"),
        ({"groups": ["nothing"]}, "/parameters/groups/0"),
        ({"groups": ["colour"], "batches": 5}, "/parameters/batches"),
        ({"batches": -1}, "/parameters/batches"),
        ({"batches": 1.5}, "/parameters/batches"),
    ],
)
def test_a_fault_of_the_request_has_a_pointer(parameters: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan(**parameters)
    assert [each.pointer for each in caught.value.faults] == [pointer]


def test_columns_of_groups_are_opened() -> None:
    spec = replace(SPEC, features=("age",))
    planned = find_method("beta-cores").plan(PlanRequest("beta-cores", 3, spec, {"groups": ["smoker"]}), FACTS)
    assert planned.columns == ("age", "ill", "smoker")
    assert plan().columns == SPEC.columns


def test_every_round_has_whole_batches() -> None:
    """Batches of late rounds begin again at the first rows of the random order."""
    planned = plan(40, batches=50, candidates=500)
    _, read = open_table(planned, FACTS, table(ROWS))
    drawn = groups._iterate_candidates(planned, FACTS, read, 500, np.random.default_rng(0))
    assert {len(batch.y) for offered in drawn for batch in offered} == {50}
