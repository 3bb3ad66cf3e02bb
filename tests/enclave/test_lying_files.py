"""Parquet and Arrow files with wrong sizes are rejected in bounded time and memory."""

import io
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.inference.core.facts import Column
from support.vault import ARROW, PARQUET, Vault
from tests.enclave.measurement import measure
from tests.factories import parquet
from workers.enclave.arrow_source import FOOTER_BYTES
from workers.enclave.sources import EXPANDED_BYTES, EXPANSION, Caps

pytestmark = pytest.mark.parsing

ROWS = 500  # of each of two row groups
UNIT = Column("x", "integer", 0, 9)
MEMORY_KIB = 400 << 10  # 175 MiB of libraries, and a few blocks
Change = Callable[[parquet.Footer, int], None]


def constant(rows: int) -> pa.Table:
    return pa.table({"x": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int8), pa.array([0.5]))})


def billion_rows() -> bytes:
    return parquet.repeated(constant(1_000_000), 1_000)


def stream(table: pa.Table, compression: str | None) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def counts_of_file(footer: parquet.Footer, rows: int) -> None:
    footer[parquet.NUM_ROWS].value = rows


def counts_of_groups(footer: parquet.Footer, rows: int) -> None:
    for group in parquet.groups(footer):
        group[parquet.GROUP_ROWS].value = rows


def counts_of_columns(footer: parquet.Footer, rows: int) -> None:
    for group in parquet.groups(footer):
        parquet.column_of(group)[parquet.NUM_VALUES].value = rows


@pytest.fixture(scope="module")
def honest() -> bytes:
    sink = io.BytesIO()
    pq.write_table(constant(2 * ROWS), sink, row_group_size=ROWS, store_schema=False)
    return sink.getvalue()


def test_rewritten_footer_without_changes_is_accepted(vault: Vault, honest: bytes) -> None:
    assert measure(vault, parquet.rewritten(honest, lambda _: None), PARQUET).word == "ready"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("rows", [-(2**63), -1, 0, 1, ROWS - 1, ROWS + 1, 2**31, 2**63 - 1])
@pytest.mark.parametrize("falsify", [counts_of_file, counts_of_groups, counts_of_columns])
def test_row_counts_that_disagree_are_malformed(vault: Vault, honest: bytes, falsify: Change, rows: int) -> None:
    """No row is left out silently, and the reader waits for no more rows."""
    run = measure(vault, parquet.rewritten(honest, lambda footer: falsify(footer, rows)), PARQUET)
    assert run.word == ("too_many_units" if falsify is counts_of_file and rows > 200_000 else "malformed")
    assert run.peak_kib < MEMORY_KIB


def test_row_counts_above_the_real_number_are_malformed(vault: Vault, honest: bytes) -> None:
    def falsify(footer: parquet.Footer) -> None:
        counts_of_file(footer, 2 * (ROWS + 1))
        counts_of_groups(footer, ROWS + 1)
        counts_of_columns(footer, ROWS + 1)

    assert measure(vault, parquet.rewritten(honest, falsify), PARQUET).word == "malformed"


@pytest.mark.parametrize(("field", "value"), [(7, 2**60), (7, -1), (parquet.DATA_OFFSET, -4), (11, 2**50)])
def test_offsets_outside_of_the_file_are_malformed(vault: Vault, honest: bytes, field: int, value: int) -> None:
    def falsify(footer: parquet.Footer) -> None:
        for group in parquet.groups(footer):
            parquet.column_of(group)[field].value = value

    run = measure(vault, parquet.rewritten(honest, falsify), PARQUET)
    assert run.word == "malformed"
    assert run.peak_kib < MEMORY_KIB


def test_billion_rows_in_a_small_file_are_rejected_before_reading(vault: Vault) -> None:
    data = billion_rows()
    assert len(data) < 1 << 20
    assert pq.ParquetFile(io.BytesIO(data)).metadata.num_rows == 10**9
    run = measure(vault, data, PARQUET, slots=10**7)
    assert run.word == "too_many_units"
    assert run.seconds < 5
    assert run.peak_kib < MEMORY_KIB


@pytest.mark.slow
@pytest.mark.long
def test_billion_rows_of_few_units_are_rejected_early(vault: Vault) -> None:
    """The cap on the expanded size bounds processor time, memory and scratch space.

    It applies if rows are not units, because the slots do not limit the rows then.
    """
    unit = {"kind": "column", "column": "x", "max_rows": 3}
    columns = (UNIT, Column("y", "binary"))
    table = constant(1_000_000).append_column("y", pa.array(np.ones(1_000_000, bool)))
    run = measure(vault, parquet.repeated(table, 1_000), PARQUET, unit=unit, columns=columns, rows=2 * 10**9)
    assert run.word == "too_large"
    assert run.seconds < 15
    assert run.peak_kib < MEMORY_KIB


@pytest.mark.slow
def test_footer_beyond_its_limit_is_not_read(vault: Vault, honest: bytes) -> None:
    length = FOOTER_BYTES + 1
    run = measure(vault, b"PAR1" + bytes(length) + length.to_bytes(4, "little") + b"PAR1", PARQUET)
    assert run.word == "too_large"
    assert run.peak_kib < MEMORY_KIB
    for length in (FOOTER_BYTES, FOOTER_BYTES + 1, 2**32 - 1):  # the file is shorter than that
        assert measure(vault, honest[:-8] + length.to_bytes(4, "little") + b"PAR1", PARQUET).word == "malformed"


@pytest.mark.parametrize("data", [b"P", b"PAR1PAR1", b"PAR1" + bytes(8), b"PAR1\xff\xff\xff\x7fPAR1"])
def test_tiny_file_is_malformed(vault: Vault, data: bytes) -> None:
    assert measure(vault, data, PARQUET).word == "malformed"


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
@pytest.mark.long
def test_compressed_stream_is_accepted_and_its_expansion_is_limited(vault: Vault, compression: str) -> None:
    assert measure(vault, stream(pa.table({"x": np.full(1000, 0.5)}), compression), ARROW).word == "ready"
    bomb = stream(pa.table({"x": pa.array(["\0" * (1 << 28)])}), compression)
    assert len(bomb) < 2 << 20
    run = measure(vault, bomb, ARROW)
    assert run.word == "too_large"
    assert run.seconds < 10
    assert run.peak_kib < 700 << 10


def test_stream_with_a_wrong_size_of_a_compressed_buffer_is_rejected(vault: Vault) -> None:
    data = stream(pa.table({"x": np.full(1000, 0.5)}), "zstd")
    for size in (2**62, 1, 7999, 8001):
        run = measure(vault, data.replace((8000).to_bytes(8, "little"), size.to_bytes(8, "little")), ARROW)
        assert run.word in {"malformed", "too_large"}
        assert run.peak_kib < MEMORY_KIB


def test_cap_on_the_expanded_size_follows_the_files_size() -> None:
    caps = Caps(10, 1 << 40)
    assert caps.of(1) == Caps(10, EXPANDED_BYTES)
    assert caps.of(10 << 30) == Caps(10, 1 << 40)
    assert caps.of(1 << 30) == Caps(10, EXPANSION << 30)
