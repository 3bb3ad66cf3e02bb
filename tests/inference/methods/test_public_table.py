"""Reading public tables: in chunks, in any order, and in bounded memory."""

from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods import public_table
from app.inference.methods.public_table import Minibatches, PublicTable
from support.table import Table
from tests.inference.support import DESIGN, table


@pytest.fixture
def source() -> Table:
    found = table(50, slots=80)
    found.columns["_present"][10] = 0
    found.columns["hours"][20] = np.nan
    return found


def _ages(x: object) -> object:
    return np.round(np.asarray(x)[:, 0] * 30 + 50).astype(int)


@pytest.mark.parametrize("chunk", [7, 65_536])
@pytest.mark.parametrize("each", [1, 4])
def test_complete_rows_are_read_in_order(source: Table, chunk: int, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for chunks of every size and units of several rows."""
    monkeypatch.setattr(public_table, "CHUNK", chunk)
    ages = np.delete(source.columns["age"][:50], [10, 20])
    found = PublicTable(Table(source.columns, rows_per_slot=each), DESIGN)
    assert found.count == 48
    np.testing.assert_array_equal(np.concatenate([_ages(x) for x, _ in found.chunks()]), ages)
    order = np.random.default_rng(0).integers(0, 48, 100)
    x, y = found.read(order)
    np.testing.assert_array_equal(_ages(x), ages[order])
    np.testing.assert_array_equal(y, np.delete(source.columns["ill"][:50], [10, 20])[order])
    np.testing.assert_allclose(found.spread[0], ages.std() / 30, rtol=1e-5)
    assert found.spread[-1] == 0


def test_no_more_than_a_chunk_is_gathered_at_once(source: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_table, "CHUNK", 7)
    found = PublicTable(source, DESIGN)
    found.read(np.arange(found.count))
    assert max(map(len, source.gathered)) == 7


@pytest.mark.parametrize("resident", [2**26, 200])
def test_minibatches_are_uniform_subsamples_without_replacement(
    source: Table, resident: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row is equally frequent, and at most once in a subsample."""
    monkeypatch.setattr(public_table, "RESIDENT_VALUES", resident)
    found = PublicTable(source, DESIGN)
    batches = Minibatches(found, 12, np.random.default_rng(1))
    counts, steps = np.zeros(found.count), 400
    for _ in range(steps):
        indices, x, y = batches.next()
        assert len(set(indices)) == 12
        expected = found.read(indices) if _ < 5 else (x, y)
        np.testing.assert_array_equal(x, expected[0])
        np.testing.assert_array_equal(y, expected[1])
        counts[indices] += 1
    share = 12 / found.count
    assert np.all(np.abs(counts - steps * share) < 5 * np.sqrt(steps * share * (1 - share)))


def test_memory_of_minibatches_is_bounded(source: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_table, "RESIDENT_VALUES", 200)
    batches = Minibatches(PublicTable(source, DESIGN), 12, np.random.default_rng(1))
    source.gathered.clear()
    for _ in range(20):
        batches.next()
    assert max(map(len, source.gathered)) * DESIGN.width <= 200


def test_a_small_table_is_its_own_minibatch(source: Table) -> None:
    found = PublicTable(source, DESIGN)
    indices, _, _ = Minibatches(found, 1000, np.random.default_rng(1)).next()
    np.testing.assert_array_equal(indices, np.arange(48))


def test_a_design_without_a_target_reads_zeros(source: Table) -> None:
    design = replace(DESIGN, target=None)
    assert not np.any(PublicTable(source, design).read(np.arange(5))[1])
