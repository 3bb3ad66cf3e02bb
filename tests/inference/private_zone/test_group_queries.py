"""Sums of potentials by group: sensitivity (W5), totality (W14), and the same bits in every partition."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.inference.core.grouping import GroupedModel, make_grouped_problem
from app.inference.core.model import Array32, Array64
from app.inference.private_zone import partition
from app.inference.private_zone.mechanisms import GRID, BadQuery
from app.inference.private_zone.partition import compute_partial_sum, cut_units
from app.inference.private_zone.queries import GroupPotentialSum
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.rows import HeldRows
from support.table import Table
from tests.inference.support import MODEL, SPEC, WIDTH, facts, table

GROUPS, DRAWS = 6, 5
PROBLEM = make_grouped_problem(SPEC, ("colour", "smoker"), facts(10))
HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, -1.0, GROUPS, 0.5, 1e-45)
SHAPES = ("one group", "different groups", "mixed", "hostile row", "hostile group")


def make_query(rng: np.random.Generator, clip: float, spread: float = 1.0, beta: float = 0.0) -> GroupPotentialSum:
    return GroupPotentialSum(spread * rng.standard_normal((DRAWS, WIDTH)), clip, GROUPS, beta)


def draw_rows(rng: np.random.Generator, n: int) -> Array32:
    """Draw folded rows: features in [-1, 1], an intercept, the sign of a label; and the group."""
    x = np.column_stack([rng.uniform(-1, 1, (n, WIDTH - 1)), np.ones(n)]) * rng.choice([-1, 1], (n, 1))
    return np.column_stack([x, rng.integers(0, GROUPS, n)]).astype(np.float32)


def square(values: NDArray[np.int64]) -> int:
    return sum(int(value) ** 2 for value in values.astype(object))


def sum_plainly(query: GroupPotentialSum, rows: Array32, present: NDArray[np.bool_], each: int) -> Array64:
    """Unit by unit in double precision."""
    total = np.zeros((GROUPS, DRAWS))
    potentials = np.asarray(MODEL.log_likelihood(rows[:, :-1].astype(np.float64), query.draws))
    potentials -= potentials.mean(axis=1, keepdims=True)
    for start in range(0, len(rows), each):
        own = np.zeros((GROUPS, DRAWS))
        for row in range(start, start + each):
            if present[row]:
                own[int(rows[row, -1])] += potentials[row]
        total += own * min(1.0, query.clip / max(float(np.linalg.norm(own)), 1e-300))
    return total


@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    clip=st.sampled_from([1e-6, 0.3, 2.0, 1e4]),
    spread=st.sampled_from([1e-3, 1.0, 1e3, 1e6]),
    each=st.sampled_from([1, 1, 3, 8, 40]),
    shape=st.sampled_from(SHAPES),
    beta=st.sampled_from([0.0, 0.0, 0.3]),
)
def test_w5_one_person_moves_the_sum_by_at_most_the_grids_radius(
    seed: int, clip: float, spread: float, each: int, shape: str, beta: float
) -> None:
    """W5, W14: for rows in one group or in several, after rounding, in exact integers."""
    rng = np.random.default_rng(seed)
    query, rows, present = make_query(rng, clip, spread, beta), draw_rows(rng, 5 * each), rng.random(5 * each) < 0.8
    unit = slice(2 * each, 3 * each)
    present[unit] = True
    if shape == "one group":
        rows[unit] = rows[2 * each]
    if shape == "different groups":
        rows[unit] = rows[2 * each]
        rows[unit, -1] = np.arange(each) % GROUPS
    if shape == "hostile row":
        rows[unit, :-1] = rng.choice(HOSTILE, (each, WIDTH)).astype(np.float32)
    if shape == "hostile group":
        rows[unit, -1] = rng.choice(HOSTILE, each).astype(np.float32)
    query.check(PROBLEM.model, PROBLEM.design)
    whole = query.sum(PROBLEM.model, rows, present, each)
    present[unit], rows[unit] = False, 0
    gap = whole - query.sum(PROBLEM.model, rows, present, each)
    assert whole.dtype == np.int64
    assert square(gap) <= GRID**2
    if shape in {"one group", "different groups"} and clip <= 0.3 and spread == 1.0 and beta == 0.0:
        assert square(gap) > 0.9 * GRID**2  # the bound is reached, so the test can fail
    assert not np.any(query.sum(PROBLEM.model, rows, np.zeros_like(present), each))


@pytest.mark.parametrize("each", [1, 2, 5, 6, 7, 40])
@pytest.mark.parametrize("clip", [0.7, 1e3])
def test_sums_equal_a_plain_implementation(each: int, clip: float) -> None:
    """With fewer rows of a unit than groups, as many, and more."""
    rng = np.random.default_rng(each)
    query, rows, present = make_query(rng, clip), draw_rows(rng, 30 * each), rng.random(30 * each) < 0.7
    rows[~present] = 0
    found = query.answer(query.sum(PROBLEM.model, rows, present, each)).reshape(GROUPS, DRAWS)
    np.testing.assert_allclose(found, sum_plainly(query, rows, present, each), rtol=2e-3, atol=2e-3 * clip**0.5)


def test_a_person_in_all_groups_is_clipped_once() -> None:
    """The norm over all blocks is the clipping norm, not that of each block."""
    rng = np.random.default_rng(1)
    query, rows = make_query(rng, 0.1, 3.0), draw_rows(rng, GROUPS)
    rows[:, -1] = np.arange(GROUPS)
    answer = query.answer(query.sum(PROBLEM.model, rows, np.ones(GROUPS, dtype=bool), GROUPS))
    assert np.all(np.linalg.norm(answer.reshape(GROUPS, DRAWS), axis=1) > 0)
    assert np.linalg.norm(answer) == pytest.approx(0.1, rel=2e-3)
    assert np.linalg.norm(answer) <= 0.1


@pytest.mark.parametrize("value", HOSTILE)
def test_w14_a_value_that_is_no_group_adds_nothing(value: float) -> None:
    rng = np.random.default_rng(3)
    query, rows, present = make_query(rng, 1.0), draw_rows(rng, 4), np.ones(4, dtype=bool)
    rows[1, -1] = value
    found = query.sum(PROBLEM.model, rows, present, 1)
    present[1] = False
    np.testing.assert_array_equal(found, query.sum(PROBLEM.model, rows, present, 1))


@pytest.mark.parametrize("each", [1, 3, 9])
def test_w5_held_streamed_and_split_rows_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, each: int) -> None:
    """Over several chunks with a remainder, and in parts of every number."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", 2048)
    count = 5000
    declared = replace(facts(count), unit={"kind": "column", "column": "person", "max_rows": each})
    columns = table(count * each, seed=2).columns
    there = (np.arange(count * each) % 7 > 0).astype(np.uint8)
    gone: dict[str, NDArray[Any]] = {name: np.where(there, values, 0) for name, values in columns.items()}
    source, problem = (
        Table(gone | {"_present": there}, each),
        make_grouped_problem(SPEC, ("colour", "smoker"), declared),
    )
    query = make_query(np.random.default_rng(2), 0.8)
    held = HeldRows(problem.model, problem.design, source, make_sampling_generator(), [(1.0, 1)]).sum(query)
    for parts in (1, 2, 5):
        places = cut_units(count, each, parts)
        sums = [
            compute_partial_sum(query, problem.model, problem.design, source, range(start, end))
            for start, end in pairwise(places)
        ]
        np.testing.assert_array_equal(np.sum(sums, axis=0), held)
    sent = from_arrays(to_arrays(query))
    np.testing.assert_array_equal(compute_partial_sum(sent, problem.model, problem.design, source, range(count)), held)


def test_groups_are_numbered_in_declared_order() -> None:
    source = table(200, slots=210)
    x, _, present = PROBLEM.design.encode(source.gather(np.arange(210)))
    expected = 2 * source.columns["colour"].astype(int) + source.columns["smoker"].astype(int)
    np.testing.assert_array_equal(x[present, -1], expected[:200])
    assert not np.any(x[~present])
    assert PROBLEM.design.grouping.labels[3] == ("green", "true")
    assert PROBLEM.design.grouping.count == GROUPS


@pytest.mark.parametrize("value", [-1.0, 2.0, np.nan, np.inf])
def test_a_value_that_is_not_declared_makes_its_row_null(value: float) -> None:
    columns = dict(table(5).columns) | {"smoker": np.array([0.0, 1.0, value, 1.0, 0.0])}
    spec = replace(SPEC, features=("age",))
    design = make_grouped_problem(spec, ("smoker",), facts(5)).design
    x, y, present = design.encode(Table(columns).gather(np.arange(5)))
    assert present.tolist() == [True, True, False, True, True]
    assert not np.any(x[2])
    assert y[2] == 0


@pytest.mark.parametrize("fault", ["groups", "shape", "not finite", "clip", "beta", "rows without groups"])
def test_a_query_that_does_not_fit_is_refused(fault: str) -> None:
    query = make_query(np.random.default_rng(0), 1.0)
    broken: dict[str, GroupPotentialSum] = {
        "groups": replace(query, groups=GROUPS + 1),
        "shape": replace(query, draws=query.draws[:, 1:]),
        "not finite": replace(query, draws=np.full_like(query.draws, np.nan)),
        "clip": replace(query, clip=np.nan),
        "beta": replace(query, beta=1.5),
        "rows without groups": query,
    }
    model: Any = MODEL if fault == "rows without groups" else PROBLEM.model
    with pytest.raises(BadQuery):
        broken[fault].check(model, PROBLEM.design)


def test_beta_needs_a_model_that_has_it() -> None:
    columns = (*facts(5).columns, replace(facts(5).columns[0], name="visits"))
    problem = make_grouped_problem(
        replace(SPEC, family="poisson-regression", features=("age",), target="visits"),
        ("smoker",),
        replace(facts(5), columns=columns),
    )
    assert isinstance(problem.model, GroupedModel)
    query = GroupPotentialSum(np.zeros((2, 2)), 1.0, 2, 0.3)
    with pytest.raises(BadQuery):
        query.check(problem.model, problem.design)
