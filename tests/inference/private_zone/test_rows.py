"""Held or streamed, whole or in parts: the same integers, in bounded memory (W5, W14)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from randomgen import ChaCha

from app.inference.core.plan import PlannedQuery
from app.inference.core.query import Integers, Query
from app.inference.private_zone import partition, rows, sampling
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.queries import BoundedScoreSum, InformationSum, MeanSum, PotentialSum
from app.inference.private_zone.queries.blocks import MOST_ROWS
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.rows import HeldRows, StreamedRows, choose_rows
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent
from support.table import Table
from tests.inference.support import DESIGN, MODEL, WIDTH, NullNoise, facts, plan, table

RNG = np.random.default_rng(8)
QUERIES: tuple[Query, ...] = (
    PotentialSum(RNG.standard_normal((4, WIDTH)), 0.8),
    BoundedScoreSum(RNG.standard_normal(WIDTH), np.eye(WIDTH), 0.5),
    InformationSum(RNG.standard_normal(WIDTH), np.eye(WIDTH), 0.5),
    MeanSum(1.0, WIDTH, intercept=True, clip=0.8),
)
RATES = (1.0, 0.4, 0.01, 1e-5)


class Recording(NullNoise):
    """Records the exact sums and adds no noise."""

    def __init__(self) -> None:
        self.sums: list[Integers] = []

    def perturb(self, sums: Integers, scale: Any) -> Integers:
        self.sums.append(sums)
        return sums


def _people(units: int, each: int) -> Table:
    """Make units of up to ``each`` rows, some without rows."""
    columns = dict(table(units * each).columns)
    columns["_present"] = (np.random.default_rng(1).random(units * each) < 0.7).astype(np.uint8)
    return Table(columns, each)


def _sums(source: Table, events: list[AtomicEvent]) -> list[Integers]:
    """Compute the integers of every query under every event, with the same subsamples."""
    queries = tuple(PlannedQuery(each.kind, each.length, event) for event in events for each in QUERIES)
    unit = {"kind": "column", "column": "person", "max_rows": source.rows_per_slot}
    declared = replace(facts(source.slots), unit=unit)
    noise, generator = Recording(), np.random.Generator(ChaCha(key=1))
    planned = replace(plan(source.slots), queries=queries)
    asked = ClippedGaussianOracle(MODEL, planned, declared, source, noise=noise, sampling=generator)
    for _ in events:
        for query in QUERIES:
            asked.ask(query)
    return noise.sums


@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("rates", [RATES, RATES[1:], RATES[2:]])
def test_streamed_rows_give_the_same_integers_as_held_ones(
    each: int, rates: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W4, W5: bit by bit, for full and subsampled queries, over several chunks with a remainder."""
    monkeypatch.setattr(partition, "CHUNK_ROWS", MOST_ROWS)
    monkeypatch.setattr(rows, "_STREAMED_UNITS", MOST_ROWS)
    monkeypatch.setattr(sampling, "_PIECE", 3000)
    source, gauss = _people(9000, each), GaussianEvent(1.0)
    events: list[AtomicEvent] = [gauss if rate == 1 else PoissonSampledEvent(rate, gauss) for rate in rates]
    held = _sums(source, events)
    before = len(source.gathered)
    monkeypatch.setattr(rows, "RESIDENT_BYTES", 0)
    streamed = _sums(source, events)
    assert len(source.gathered) >= before + len(events) * len(QUERIES)
    for one, other in zip(held, streamed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.any(held[0])


class Endless:
    """A table of more slots than fit into memory; it records the largest number gathered at once."""

    slots, rows_per_slot, most = 10**11, 1, 0

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        self.most = max(self.most, len(indices))
        if indices[-1] > 10**6:
            raise StopAsyncIteration
        names = ("age", "hours", "colour", "smoker", "ill", "_present")
        return {name: np.zeros(len(indices)) for name in names}


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_a_table_beyond_the_bound_is_streamed_in_bounded_memory(rate: float) -> None:
    """W14: slots, rates and widths decide before any row is read; all slots are never listed."""
    source = Endless()
    found = choose_rows(MODEL, DESIGN, source, make_sampling_generator(), [(rate, 5)], summation=None)
    assert isinstance(found, StreamedRows)
    with pytest.raises(StopAsyncIteration):
        found.sum(QUERIES[-1])
    assert 0 < source.most <= 65_536


def test_a_table_that_fits_is_held() -> None:
    source = Endless()
    source.slots = 10
    assert isinstance(
        choose_rows(MODEL, DESIGN, source, make_sampling_generator(), [(1.0, 5)], summation=None), HeldRows
    )
    assert source.most == 10
