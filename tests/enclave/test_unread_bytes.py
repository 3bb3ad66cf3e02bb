"""Bytes that no reader would read are a fault of the file."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.inference.core.facts import Column
from support.vault import ARROW, PARQUET
from tests.enclave.test_arrow_source import encode, read_reason, read_stored
from tests.factories import parquet
from workers.enclave.faults import FileFault
from workers.enclave.parquet_layout import check_every_byte

X = Column("x", "real", -10.0, 10.0)
WORD = Column("w", "categorical", categories=("a", "1"))
COLUMNS = [X, WORD]
ROWS = 600
TABLE = pa.table({"x": np.arange(float(ROWS)) % 7, "w": ["a", "1"] * (ROWS // 2)})
OTHER = pa.table({"x": np.arange(300.0) % 5, "w": ["1", "a"] * 150})
WRITTEN = Path(__file__).with_name("written")
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "write_statistics": False, "compression": "none"},
    "groups": {"row_group_size": 70},
    "page index": {"write_page_index": True, "row_group_size": 200},
    "filters": {"bloom_filter_options": {"x": True, "w": {"ndv": 100}}},
    "filters and page index": {"bloom_filter_options": {"w": True}, "write_page_index": True, "row_group_size": 250},
    "checksums": {"data_page_size": 64, "write_page_checksum": True},
    "newer pages": {"data_page_version": "2.0", "compression": "zstd", "write_page_index": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_all_parts_that_writers_put_between_pages_are_accepted(name: str) -> None:
    data = encode(TABLE, PARQUET, **OPTIONS[name])
    assert read_stored(data, PARQUET, COLUMNS, ROWS)["x"] == TABLE["x"].to_pylist()


@pytest.mark.parametrize("name", ["duckdb.parquet", "fastparquet.parquet", "polars.parquet", "polars.arrows"])
def test_files_of_other_writers_are_accepted(name: str) -> None:
    """The files were written by DuckDB 2.0, fastparquet 2026.9 and Polars 2.1."""
    media, copies = (ARROW if name.endswith("arrows") else PARQUET), 600 if name.startswith("duckdb") else 1
    data = (WRITTEN / name).read_bytes()
    table = read_stored(data, media, COLUMNS, 4 * copies)
    assert (table["x"], table["w"]) == ([1.0, 2.5, -3.0, 2.5] * copies, [0, 1, 0, 0] * copies)
    for altered in (data + data, data + b"\0", b"\0" + data):
        assert read_reason(altered, media, COLUMNS, slots=8 * copies) == "malformed"


def test_empty_row_groups_are_accepted() -> None:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, TABLE.schema) as writer:
        for piece in (TABLE[:0], TABLE[:10], TABLE[:0]):
            writer.write_table(piece)
    assert len(read_stored(sink.getvalue().to_pybytes(), PARQUET, COLUMNS, ROWS)["x"]) == 10


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("first", [TABLE, OTHER, TABLE[:0]], ids=["same", "other", "empty"])
def test_two_parquet_files_in_a_row_are_malformed(name: str, first: pa.Table) -> None:
    """A reader uses the last footer, whose offsets may point into the first file."""
    data = encode(first, PARQUET, **OPTIONS[name]) + encode(TABLE, PARQUET, **OPTIONS[name])
    assert read_reason(data, PARQUET, COLUMNS, slots=2 * ROWS) == "malformed"


@pytest.mark.parametrize("extra", [b"x", bytes(8), bytes(4), b"\xff\xff\xff\xff\0\0\0\0", encode(OTHER, ARROW)])
def test_bytes_after_the_end_of_a_stream_are_malformed(extra: bytes) -> None:
    data = encode(TABLE, ARROW)
    assert read_stored(data, ARROW, COLUMNS, ROWS)["x"] == TABLE["x"].to_pylist()
    assert read_reason(data + extra, ARROW, COLUMNS, slots=2 * ROWS) == "malformed"


@pytest.mark.parametrize("name", OPTIONS)
def test_bytes_that_no_footer_names_are_malformed(name: str) -> None:
    """The bytes are before the footer, or replace the first magic number; zeros there are padding."""
    data = encode(TABLE, PARQUET, **OPTIONS[name])
    place = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert read_reason(data[:place] + b"junk" + data[place:], PARQUET, COLUMNS, slots=ROWS) == "malformed"
    assert read_reason(b"PAR2" + data[4:], PARQUET, COLUMNS, slots=ROWS) == "malformed"
    padded = data[:place] + bytes(4096) + data[place:]
    assert read_stored(padded, PARQUET, COLUMNS, ROWS)["x"] == TABLE["x"].to_pylist()


def test_row_group_that_the_footer_leaves_out_is_malformed() -> None:
    """The footer leaves out the second row group, whose bytes exist."""
    data = encode(TABLE, PARQUET, row_group_size=ROWS // 2, store_schema=False)

    def leave_out(footer: parquet.Footer) -> None:
        del footer[parquet.ROW_GROUPS].value[1][1]
        footer[parquet.NUM_ROWS].value = ROWS // 2

    assert read_reason(parquet.rewritten(data, leave_out), PARQUET, COLUMNS, slots=ROWS) == "malformed"


def test_chunk_in_another_file_is_malformed() -> None:
    """The footer names another file for the pages of a column."""
    data = encode(TABLE, PARQUET, store_schema=False)

    def refer(footer: parquet.Footer) -> None:
        chunk = parquet.groups(footer)[0][parquet.COLUMNS].value[1][0]
        chunk[1] = parquet.Field(8, b"other.parquet")

    with pytest.raises(FileFault, match="malformed"):
        check_every_byte(io.BytesIO(referring := parquet.rewritten(data, refer)), len(referring))


def test_pages_of_a_chunk_without_a_place_are_malformed() -> None:
    """A chunk without offsets accounts for no byte of its pages."""
    data = encode(TABLE, PARQUET, store_schema=False, use_dictionary=False)

    def displace(footer: parquet.Footer) -> None:
        parquet.column_of(parquet.groups(footer)[0])[parquet.DATA_OFFSET].value = 0

    with pytest.raises(FileFault, match="malformed"):
        check_every_byte(io.BytesIO(displaced := parquet.rewritten(data, displace)), len(displaced))


@pytest.mark.parametrize("copy", [b"\xff" * 40, b"\x16\x02\0"], ids=["no struct", "other numbers"])
def test_bytes_in_place_of_a_copy_of_the_metadata_are_malformed(copy: bytes) -> None:
    """Some writers repeat a chunk's metadata after its pages; other bytes there belong to nothing."""
    data = encode(TABLE.select(["x"]), PARQUET, store_schema=False)
    place = len(data) - 8 - int.from_bytes(data[-8:-4], "little")

    def announce(footer: parquet.Footer) -> None:
        parquet.groups(footer)[0][parquet.COLUMNS].value[1][0][2] = parquet.Field(6, place)

    announced = parquet.rewritten(data[:place] + copy + data[place:], announce)
    with pytest.raises(FileFault, match="malformed"):
        check_every_byte(io.BytesIO(announced), len(announced))


def test_a_filter_without_a_length_is_measured_by_its_header() -> None:
    """Older writers leave out the length of a filter."""
    data = encode(TABLE, PARQUET, bloom_filter_options={"w": True}, store_schema=False)

    def forget_length(footer: parquet.Footer) -> None:
        for group in parquet.groups(footer):
            del parquet.column_of(group, 1)[15]

    assert len(read_stored(parquet.rewritten(data, forget_length), PARQUET, COLUMNS, ROWS)["x"]) == ROWS


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_page_with_a_wrong_checksum_is_malformed(version: str) -> None:
    """A changed value is detected by the checksum; a page without a checksum is read as it is."""
    table = pa.table({"x": np.full(50, 5.0)})
    options = {"use_dictionary": False, "compression": "none", "data_page_version": version}
    for checked in (True, False):
        data = encode(table, PARQUET, write_page_checksum=checked, **options)
        place = data.index(np.full(50, 5.0).tobytes()) + 8 * 20
        changed = data[:place] + np.float64(2.5).tobytes() + data[place + 8 :]
        if checked:
            assert read_stored(data, PARQUET, [X], 50)["x"] == [5.0] * 50
            assert read_reason(changed, PARQUET, [X], slots=50) == "malformed"
        else:
            assert read_stored(changed, PARQUET, [X], 50)["x"][20] == 2.5
