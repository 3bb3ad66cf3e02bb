"""Bounds of belief networks: every row, every belief and hostile cells."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.conjugate import make_conjugate_problem
from app.inference.conjugate.belief_network import SigmoidBelief
from app.inference.core.model import Array32, Array64
from app.inference.core.statistics import compute_units
from app.inference.private_zone import partition
from app.inference.private_zone.mechanisms import GRID
from app.inference.private_zone.partition import compute_partial_sum
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.rows import HeldRows
from tests.inference.conjugate.networks import (
    FACTS,
    NAMES,
    ROWS,
    SPEC,
    VISIBLE,
    draw_belief,
    draw_bits,
    fold,
    make_model,
    make_queries,
    make_table,
)
from tests.inference.private_zone.test_work_on_rows import SHARES, Steps

HOSTILE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e-45, 0.5)


def test_the_proven_bounds_hold_and_are_reached() -> None:
    """For every belief, each block alone; weights of one sign make all hidden bits one or zero."""
    rng = np.random.default_rng(0)
    rows, largest = fold(rng.integers(0, 2, (500, VISIBLE))), dict[str, float]()
    for spread in (0.1, 1.0, 30.0, 1e6):
        for moving in (False, True):
            belief = draw_belief(rng, spread)
            for sign in (0, 1, -1):
                belief[-2] = sign * 1e6 if sign else belief[-2]  # the biases of the hidden units
                values = make_model().contribute(rows, belief, 1.0, moving=moving)
                blocks, start = make_model().list_blocks(1.0, moving=moving), 0
                for block in blocks:
                    norms = np.linalg.norm(values[:, start : start + block.length].astype(np.float64), axis=1)
                    assert norms.max() <= block.bound * (1 + 1e-6)
                    largest[block.name] = max(largest.get(block.name, 0.0), norms.max() / block.bound)
                    start += block.length
                assert start == values.shape[1]
    assert all(share > 0.99 for share in largest.values()), largest


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), each=st.sampled_from([1, 3]), spread=st.sampled_from([0.1, 3.0, 1e5]))
def test_w5_one_unit_moves_the_sum_by_at_most_the_grids_radius(seed: int, each: int, spread: float) -> None:
    """For any values of rows, any belief and any units, in exact integers."""
    rng = np.random.default_rng(seed)
    rows = fold(rng.integers(0, 2, (4 * each, VISIBLE)))
    places = rng.random(rows.shape) < rng.choice([0.0, 0.1])
    rows[places] = rng.choice(HOSTILE, int(places.sum())).astype(np.float32)
    present = np.ones(len(rows), dtype=bool)
    for asked in make_queries(draw_belief(rng, spread), each):
        query = replace(asked, units=asked.units * rng.choice([1.0, 1e-2]))
        query.check(make_model(), make_conjugate_problem(SPEC, FACTS).design)
        whole = query.sum(make_model(), rows, present, each)
        without = present.copy()
        without[each : 2 * each] = False
        gap = (whole - query.sum(make_model(), rows, without, each)).astype(object)
        assert sum(int(value) ** 2 for value in gap) <= GRID**2
        assert not np.any(query.sum(make_model(), rows, np.zeros_like(present), each))


CELLS = (*HOSTILE, -1.0, 0.0, 1.0, 2.0, 1e300, -1e300, 1 + 1e-9, -1e-300)
EXTREME = (0.0, -1e-3, 1e-3, -100.0, 100.0, -1e4, 1e4, -3e38, 3e38)
"""Entries of beliefs: a run limits weights and biases to 100, and their products follow."""


def list_bits(visible: int) -> Array32:
    """List every row of bits, as ``[y, 1]``."""
    return fold(np.array(list(itertools.product((0, 1), repeat=visible))))


def measure_shares(own: SigmoidBelief, rows: Array32, belief: Array64, *, moving: bool) -> Array64:
    """Measure each row's blocks in their bounds, and the joint norm in units.

    The result is ``(blocks + 1, n)``.
    """
    values = own.contribute(rows, belief, 1.0, moving=moving).astype(np.float64)
    blocks = own.list_blocks(1.0, moving=moving)
    ends = np.cumsum([block.length for block in blocks])
    shares = [
        np.linalg.norm(values[:, end - block.length : end], axis=1) / block.bound
        for block, end in zip(blocks, ends, strict=True)
    ]
    return np.array([*shares, np.linalg.norm(values / compute_units(blocks, 1), axis=1)])


@pytest.mark.long
def test_w5_no_row_exceeds_its_bounds_by_brute_force() -> None:
    """All rows of small networks are shorter than the bounds.

    With one unit, all extreme beliefs are tried, and otherwise 300. So no row is clipped.
    """
    rng, largest = np.random.default_rng(7), np.zeros(4)
    for visible, units in ((1, 1), (2, 2), (5, 3), (6, 2)):
        own, rows = SigmoidBelief(visible, units, 1.0, 100), list_bits(visible)
        size = math.prod(own.belief_shape)
        chosen: Any = itertools.product(EXTREME, repeat=size) if size == 4 else rng.choice(EXTREME, (300, size))
        for entries in chosen:
            belief = np.reshape(entries, own.belief_shape).astype(np.float64)
            shares = measure_shares(own, rows, belief, moving=True)
            assert not np.any(shares > 1 + 1e-5), (belief, shares)
            largest = np.fmax(largest, np.nan_to_num(shares.max(axis=1)))
        assert not np.any(own.contribute(np.zeros_like(rows), belief, 1.0, moving=True))
        fixed = measure_shares(own, rows, belief, moving=False)
        np.testing.assert_allclose(fixed, 1, rtol=1e-6)  # all rows have the largest norm
    assert np.all(largest > 0.99), largest


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), each=st.sampled_from([1, 3]))
def test_w5_any_cells_of_a_table_give_bounded_statistics(seed: int, each: int) -> None:
    """Cells are clamped to bits, and cells that are no numbers leave null rows.

    So rows need no clipping, and one unit moves the sum by at most the grid's radius, in exact integers.
    """
    rng = np.random.default_rng(seed)
    cells = rng.choice(CELLS, (4 * each, VISIBLE))
    present = rng.random(len(cells)) < 0.9
    problem = make_conjugate_problem(SPEC, FACTS)
    table = {name: cells[:, place] for place, name in enumerate(NAMES)}
    x, y, there = problem.design.encode(table | {"age": np.zeros(len(cells)), "_present": present.astype(np.uint8)})
    np.testing.assert_array_equal(there, present & ~np.isnan(cells).any(axis=1))
    np.testing.assert_allclose(x, np.clip(np.nan_to_num(cells), 0, 1) * there[:, None], atol=1e-6)
    rows = problem.model.fold(x, y)
    belief = rng.choice(EXTREME[:-2], make_model().belief_shape)
    for asked in make_queries(belief, each):
        for row in np.flatnonzero(there):
            assert measure_shares(make_model(), rows[row : row + 1], belief, moving=asked.moving).max() <= 1 + 1e-5
        whole = asked.sum(make_model(), rows, there, each)
        for unit in range(4):
            without = there.copy()
            without[unit * each : (unit + 1) * each] = False
            gap = (whole - asked.sum(make_model(), rows * without[:, None], without, each)).astype(object)
            assert sum(int(value) ** 2 for value in gap) <= GRID**2


def test_w5_held_and_split_rows_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "CHUNK_ROWS", 2048)
    rng, count = np.random.default_rng(1), 9000
    problem = make_conjugate_problem(SPEC, replace(FACTS, slots=count))
    source = make_table(draw_bits(rng, count), rng.random(count) < 0.7)
    for query in make_queries(draw_belief(rng, 1.0)):
        held = HeldRows(problem.model, problem.design, source, make_sampling_generator(), [(1.0, 1)]).sum(query)
        halves = [
            compute_partial_sum(query, problem.model, problem.design, source, part)
            for part in (range(4096), range(4096, count))
        ]
        np.testing.assert_array_equal(halves[0] + halves[1], held)
        streamed = compute_partial_sum(query, problem.model, problem.design, source, range(count))
        np.testing.assert_array_equal(streamed, held)


def test_w14_steps_and_shapes_do_not_depend_on_presence() -> None:
    taken, rng = {}, np.random.default_rng(2)
    problem, bits, chances = make_conjugate_problem(SPEC, FACTS), draw_bits(rng, ROWS), rng.random(ROWS)
    asked = make_queries(draw_belief(rng, 1.0))
    for name, share in [("warm", 0.5), *SHARES.items()]:
        source = make_table(bits, chances < share)
        with Steps() as steps:
            for query in asked:
                compute_partial_sum(query, problem.model, problem.design, source, range(ROWS))
        taken[name] = steps.taken
    assert any(name == "call infer_hidden" for name, _ in taken["full"])
    assert taken["empty"] == taken["half"] == taken["full"]
