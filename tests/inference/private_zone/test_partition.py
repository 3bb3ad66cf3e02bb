"""Queries in parts: every unit in exactly one, and the same integers as in one piece."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from randomgen import ChaCha

from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import PlannedQuery
from app.inference.core.problems import make_problem
from app.inference.core.query import Integers, Query
from app.inference.private_zone import partition
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.partition import Slots, compute_chunk_units, compute_partial_sum, cut_units
from app.inference.private_zone.queries.blocks import MOST_ROWS, compute_power_of_two
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent
from support.table import Table
from tests.inference.private_zone.test_people import QUERIES, Exact
from tests.inference.support import SPEC, NullNoise, facts, plan, table

SLOTS = 5_000
FULL, SAMPLED = GaussianEvent(1.0), PoissonSampledEvent(0.4, GaussianEvent(1.0))


@given(units=st.integers(0, 10**9), each=st.sampled_from([1, 3, 20, 511, 512, 513, 10**6]), parts=st.integers(1, 64))
def test_every_unit_is_in_one_part_and_no_part_splits_a_block(units: int, each: int, parts: int) -> None:
    """W5: parts touch, cover all, and begin where blocks begin."""
    places = cut_units(units, each, parts)
    assert (places[0], places[-1]) == (0, units)
    assert 2 <= len(places) <= parts + 1
    assert all(start < end for start, end in itertools.pairwise(places)) or units == 0
    assert all(place % compute_power_of_two(MOST_ROWS // each) == 0 for place in places[:-1])
    assert max(np.diff(places)) <= -(-units // parts) + compute_chunk_units(each)


def people(each: int) -> tuple[Table, DeclaredFacts]:
    columns = table(SLOTS * each, seed=each).columns
    present = (np.arange(SLOTS * each) % 7 > 0).astype(np.uint8)
    gone: dict[str, NDArray[Any]] = {name: np.where(present, values, 0) for name, values in columns.items()}
    unit = {"kind": "column", "column": "person", "max_rows": each}
    return Table(gone | {"_present": present}, each), replace(facts(SLOTS), unit=unit)


def exact_sums(query: Query, each: int, event: AtomicEvent, parts: int | None) -> list[Integers]:
    """Compute the sums of two queries, over ``parts`` parts unless it is None."""
    source, declared = people(each)
    problem, noise, sums = make_problem(SPEC, declared), Exact(), []

    def in_parts(asked: Query, slots: Slots) -> Integers:
        assert parts is not None
        places = cut_units(len(slots), each, parts)
        pieces = [slots[start:end] for start, end in itertools.pairwise(places)]
        found = [compute_partial_sum(asked, problem.model, problem.design, source, piece) for piece in pieces[::-1]]
        return np.asarray(np.sum(found, axis=0))

    oracle = ClippedGaussianOracle(
        problem.model,
        replace(plan(SLOTS), queries=(PlannedQuery(query.kind, query.length, event, 2),)),
        declared,
        source,
        noise=noise,
        sampling=np.random.Generator(ChaCha(key=7)),
        summation=None if parts is None else in_parts,
    )
    for _ in range(2):
        oracle.ask(query)
        sums.append(noise.sum)
    return sums


@pytest.mark.parametrize("event", [FULL, SAMPLED], ids=["full", "sampled"])
@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
def test_w5_the_sum_does_not_depend_on_the_partition(
    query: Query, each: int, event: AtomicEvent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W5: the same subsample, the same integers, in one piece or in many."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", MOST_ROWS)
    whole = exact_sums(query, each, event, None)
    assert any(np.any(values != 0) for values in whole)
    for parts in (1, 2, 7):
        for one, other in zip(whole, exact_sums(query, each, event, parts), strict=True):
            assert one.tolist() == other.tolist()


def test_a_query_in_parts_gathers_no_rows_beforehand() -> None:
    """Memory does not depend on the table: rows are read in chunks when a query needs them."""
    source, declared = people(1)
    model = make_problem(SPEC, declared).model
    sampling = np.random.Generator(ChaCha(key=7))
    ClippedGaussianOracle(
        model,
        plan(SLOTS),
        declared,
        source,
        noise=NullNoise(),
        sampling=sampling,
        summation=lambda *_: np.zeros(4, np.int64),
    )
    assert sum(map(len, source.gathered)) == 0


@pytest.mark.parametrize(("rows", "columns"), [(1 << 13, 64), (7, 2), (1000, 1)])
def test_folded_rows_do_not_depend_on_the_size_of_copies(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int
) -> None:
    source, declared = people(1)
    problem = make_problem(SPEC, declared)
    x, y, present = problem.design.encode(source.gather(np.arange(SLOTS)))
    monkeypatch.setattr(partition, "_COPIED_ROWS", rows)
    monkeypatch.setattr(partition, "_COPIED_COLUMNS", columns)
    found, there = partition.fold(problem.model, problem.design, source, range(SLOTS))
    assert found.flags.c_contiguous
    assert np.array_equal(found, problem.model.fold(x, y))
    assert np.array_equal(there, present)
    assert columns < found.shape[1] or columns == 64
