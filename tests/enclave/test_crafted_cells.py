"""W14 for ingestion: a table of hostile cells is ingested like an ordinary table.

The cells are crafted so that code on rows would raise, overflow or run long.
"""

import io
import resource
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.inference.core.facts import Column
from support.vault import ARROW, COLUMNS, CSV, NAMES, PARQUET, Vault, make_csv_file
from tests.enclave.measurement import measure
from workers.enclave import Ingested, Rejected
from workers.enclave.parse import parse
from workers.enclave.sources import Caps

pytestmark = pytest.mark.parsing

ROWS = 30_000
ORDINARY = ["40", "20.25", "Male", "A", "1", "0"]
CRAFTED = [
    "1e308", "-1e308", "1e309", "4.9e-324", "1e-400", "1" * 300, "0." + "0" * 300 + "1", "1e" + "9" * 300,
    "-0.0", "nan", "-nan", "inf", "-Infinity", "NaN(1)", "0x1p-3", "٣", "１２", "9223372036854775808",
    "-9223372036854775809", "2024-02-30", "1_000", "1,000", "", " ", '"', '""', "null", "NULL", "None", "NA",
    "\udcff\udcfe", "\udced\udca0\udc80", "\u2028", "=1+1", "true", "TRUE ", "e", ".", "+-1", "\u202e40",
    "a\u0301", "\ufeff", "x" * 2000,
]  # fmt: skip


def table(cells: list[str], rows: int = ROWS) -> bytes:
    return make_csv_file([[cells[(row + place) % len(cells)] for place in range(len(COLUMNS))] for row in range(rows)])


def encode(cells: pa.Table, media_type: str) -> bytes:
    sink = io.BytesIO()
    if media_type == PARQUET:
        pq.write_table(cells, sink)
    else:
        with pa.ipc.new_stream(sink, cells.schema) as writer:
            writer.write_table(cells)
    return sink.getvalue()


def measure_cost(vault: Vault, data: bytes, media_type: str = CSV) -> tuple[float, int]:
    """Ingest ``data``; return the child's processor seconds and the size of the table."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = vault.ingest(vault.receive(data, media_type), slots=ROWS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert isinstance(outcome, Ingested)
    with vault.store.open(outcome.table_object) as file:
        size = file.seek(0, io.SEEK_END)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, size


@pytest.mark.parametrize("cell", CRAFTED, ids=lambda cell: ascii(cell)[:24])
def test_w14_cell_is_a_value_or_makes_its_row_null(cell: str) -> None:
    """W14: no cell rejects the file, and every row keeps its place."""
    rows = [[cell] * len(COLUMNS), ORDINARY, [cell, "1"], [cell] * 9, ORDINARY]
    batches = list(parse(io.BytesIO(make_csv_file(rows)), CSV, COLUMNS, 5, Caps(10, 1 << 20)))
    present = np.concatenate([batch["_present"] for batch in batches])
    hours = np.concatenate([batch["hours"] for batch in batches])
    assert present[1:].tolist() == [1, 0, 0, 1]
    assert hours[0] == 0 if not present[0] else 1.5 <= hours[0] <= 99.0
    assert hours[1:].tolist() == [20.25, 0, 0, 20.25]


@pytest.mark.slow
def test_w14_hostile_table_takes_the_time_of_an_ordinary_one(vault: Vault) -> None:
    """W14: time follows the public number of bytes, within a factor; the stored table has the same size."""
    ordinary, size = measure_cost(vault, table(ORDINARY))
    crafted, same = measure_cost(vault, table([cell for cell in CRAFTED if len(cell) <= 20]))
    assert same == size
    assert crafted < 2.5 * ordinary + 0.5


@pytest.mark.slow
@pytest.mark.long
def test_w14_hostile_table_takes_the_memory_of_an_ordinary_one(vault: Vault) -> None:
    """W14: the peak of the process follows the numbers of rows and bytes, and not the cells."""
    rows = 150_000
    crafted = table([cell for cell in CRAFTED if len(cell) <= 20], rows)
    wide = len(crafted) // rows - len(",".join(ORDINARY)) - 2
    ordinary = table([*ORDINARY[:-1], ORDINARY[-1] + " " * wide], rows)
    assert abs(len(ordinary) / len(crafted) - 1) < 0.03
    peaks = [measure(vault, data, CSV, columns=COLUMNS, memory_bytes=2 << 30).peak_kib for data in (ordinary, crafted)]
    assert max(peaks) < 1.15 * min(peaks)


@pytest.mark.parametrize("media_type", [PARQUET, ARROW])
@pytest.mark.long
def test_w14_hostile_doubles_take_the_memory_of_ordinary_ones(vault: Vault, media_type: str) -> None:
    odd = np.array([0x7FF8DEADBEEF0001, 1, 0x8000000000000000, 0x7FF0000000000000, 0xFFF0000000000000], np.uint64)
    tables = [pa.table({"x": np.resize(values, 200_000)}) for values in (np.arange(5) / 7, odd.view(np.float64))]
    x = (Column("x", "real", 0.0, 1.0),)
    runs = [measure(vault, encode(each, media_type), media_type, columns=x) for each in tables]
    assert [run.word for run in runs] == ["ready"] * 2
    assert max(run.peak_kib for run in runs) < 1.15 * min(run.peak_kib for run in runs)


@pytest.mark.parametrize("media_type", [PARQUET, ARROW])
def test_w14_doubles_of_every_kind_are_ingested(vault: Vault, media_type: str) -> None:
    """Payloads of NaN, subnormals and infinities do not reject the file."""
    odd = np.array([0x7FF8DEADBEEF0001, 1, 0x8000000000000000, 0x7FF0000000000000, 0xFFF0000000000000], np.uint64)
    cells = {
        "age": pa.array([2**63 - 1, -(2**63), 0, None, 1]),
        "hours": pa.array(odd.view(np.float64)),
        "sex": pa.array(["Male", None, "\0", "x" * 1000, " odd"]),
        "race": pa.array([b"\xff", b"A", b"", None, b"B"]),
        "rich": pa.array([5, -1, 0, 1, None], pa.int8()),
        "ill": pa.array([True, None, False, True, False]),
    }
    assert isinstance(vault.ingest(vault.receive(encode(pa.table(cells), media_type), media_type), slots=10), Ingested)


def billion_rows() -> bytes:
    """A few kilobytes of run-length encoded dictionary indices, for ten million rows a group."""
    sink = io.BytesIO()
    one = pa.table({"x": pa.DictionaryArray.from_arrays(np.zeros(10_000_000, np.int32), pa.array([0.5]))})
    with pq.ParquetWriter(sink, one.schema, compression="zstd") as writer:
        for _ in range(3):
            writer.write_table(one, row_group_size=10_000_000)
    return sink.getvalue()


def million_cell() -> bytes:
    return make_csv_file([ORDINARY, ["9" * 1_000_000, *ORDINARY[1:]], ORDINARY])


def ten_thousand_columns() -> bytes:
    return (",".join(f"c{place}" for place in range(10_000)) + "\n" + "1," * 9_999 + "1\n").encode()


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(billion_rows, PARQUET), (ten_thousand_columns, CSV)],
)
def test_hostile_file_is_rejected_for_its_missing_columns(
    vault: Vault, data: Callable[[], bytes], media_type: str
) -> None:
    content = data()
    assert len(content) < 1 << 20
    outcome = vault.ingest(vault.receive(content, media_type))
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "missing_column"
    assert set(outcome.columns) <= set(NAMES)


def test_parquet_file_with_more_rows_than_slots_is_rejected(vault: Vault) -> None:
    upload = vault.receive(billion_rows(), PARQUET)
    outcome = vault.ingest(upload, [Column("x", "real", 0.0, 1.0)], slots=100)
    assert outcome == Rejected("too_many_units")


def test_cell_of_a_megabyte_does_not_reject_the_file(vault: Vault) -> None:
    assert isinstance(vault.ingest(vault.receive(million_cell()), slots=10), Ingested)
