"""Parquet and Arrow: the same tables as CSV, and a reason for every fault of the file."""

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.inference.core.facts import Column
from support.vault import ARROW, COLUMNS, PARQUET, Rows, to_lists
from tests.factories import parquet
from workers.enclave import arrow_source
from workers.enclave.cells import make_null_rows
from workers.enclave.faults import FileFault
from workers.enclave.parse import parse
from workers.enclave.sources import Caps

REAL = Column("x", "real", -10.0, 10.0)
WHOLE = Column("x", "integer", -10, 10)
TRUTH = Column("x", "binary")
WORD = Column("x", "categorical", categories=("1", "a", "ä"))
MEDIA = pytest.mark.parametrize("media", [PARQUET, ARROW])


def encode(table: pa.Table, media: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    if media == PARQUET:
        pq.write_table(table, sink, **options)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def read_stored(data: bytes, media: str, columns: Any, slots: int = 10, caps: Caps = Caps(10**6, 1 << 30)) -> Rows:  # noqa: B008
    batches = list(parse(io.BytesIO(data), media, columns, slots, caps))
    return to_lists({name: np.concatenate([batch[name] for batch in batches]) for name in make_null_rows(columns, 0)})


def read_reason(data: bytes, media: str, columns: Any = (REAL,), **options: Any) -> str:
    with pytest.raises(FileFault) as fault:
        read_stored(data, media, columns, **options)
    return fault.value.reason


FULL = {
    "ill": pa.array([True, None, False]),
    "age": pa.array([40, 200, None], pa.int16()),
    "hours": pa.array([20.5, 30.0, float("nan")], pa.float32()),
    "sex": pa.array(["Male", "Female", "Male"]).dictionary_encode(),
    "race": pa.array(["A", "?", None], pa.large_string()),
    "rich": pa.array([1, 0, 1], pa.uint8()),
}


@MEDIA
def test_table_of_mixed_types_is_converted(media: str) -> None:
    assert read_stored(encode(pa.table(FULL), media), media, COLUMNS) == {
        "age": [40, 90, 0], "hours": [20.5, 30, 0], "sex": [1, 0, 0], "race": [0, 1, 0],
        "rich": [1, 0, 0], "ill": [1, 1, 0], "_present": [1, 1, 0],
    }  # fmt: skip


@MEDIA
@pytest.mark.parametrize(
    ("column", "cells", "values"),
    [
        (REAL, pa.array([1, -99, None], pa.int64()), [1, -10, 0]),
        (REAL, pa.array([2**64 - 1], pa.uint64()), [10]),
        (REAL, pa.array([Decimal("1.5"), Decimal("99.25")], pa.decimal128(10, 2)), [1.5, 10]),
        (REAL, pa.array([Decimal("1.5")], pa.decimal256(60, 2)), [1.5]),
        (REAL, pa.array([True, False]), [1, 0]),
        (REAL, pa.array(["1.5", "x"]), [1.5, 0]),
        (REAL, pa.array([b"1.5", b"\xff"]), [1.5, 0]),
        (REAL, pa.array([1.5, 2.5, 1.5]).dictionary_encode(), [1.5, 2.5, 1.5]),
        (REAL, pa.nulls(2), [0, 0]),
        (WHOLE, pa.array([1.0, 1.5]), [1, 0]),
        (TRUTH, pa.array([True, False, None]), [1, 0, 0]),
        (TRUTH, pa.array([1.0, 0.0, 0.5]), [1, 0, 0]),
        (TRUTH, pa.array(["true", "0", ""]), [1, 0, 0]),
        (WORD, pa.array(["ä", "a", "b"], pa.string()), [2, 1, 0]),
        (WORD, pa.array([1, 2]), [0, 0]),
        (WORD, pa.array([1.0, 2.0, None]), [0, 0, 0]),
        (WORD, pa.array([True, False]), [0, 0]),
        (WORD, pa.array(["a", None, "ä"]).dictionary_encode(), [1, 0, 2]),
    ],
)
def test_compatible_types_are_converted_to_the_declared_one(
    media: str, column: Column, cells: Any, values: list[float]
) -> None:
    assert read_stored(encode(pa.table({"x": cells}), media), media, [column])["x"] == values


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.float16(), pa.decimal32(5, 1)])
def test_types_of_streams_only_are_converted(kind: Any) -> None:
    text = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    cells = pa.array(["1.5", "0.5"]).cast(kind) if text else pa.array([1.5, 0.5], pa.float64()).cast(kind)
    assert read_stored(encode(pa.table({"x": cells}), ARROW), ARROW, [REAL])["x"] == [1.5, 0.5]


@MEDIA
@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (REAL, pa.array([0], pa.timestamp("s"))),
        (REAL, pa.array([0], pa.date32())),
        (WHOLE, pa.array([0], pa.time32("s"))),
        (WHOLE, pa.array([0], pa.duration("s"))),
        (REAL, pa.array([[1.0]])),
        (WORD, pa.array([{"a": "a"}])),
        (WORD, pa.array([0], pa.timestamp("us"))),
    ],
)
def test_incompatible_types_are_rejected(media: str, column: Column, cells: Any) -> None:
    """All columns with a wrong type are named, by their declared names."""
    good, also = Column("good", "real", 0.0, 1.0), Column("also", "binary")
    table = pa.table({"also": pa.array([[True]]), "x": cells, "good": [0.5]})
    with pytest.raises(FileFault) as fault:
        read_stored(encode(table, media), media, [column, good, also])
    assert (fault.value.reason, fault.value.columns) == ("wrong_type", ("x", "also"))


X = pa.array([1.0, 2.0])


@MEDIA
@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"y": X}), "missing_column"),
        (pa.table({"x": X, "y": X}), "unknown_column"),
        (pa.table([X, X], names=["x", "x"]), "malformed"),
        (pa.table({"x": X[:0]}), "empty"),
        (pa.table({"x": pa.array([1.0] * 11)}), "too_many_units"),
    ],
    ids=["missing", "unknown", "twice", "empty", "too many"],
)
def test_fault_of_the_file_has_its_reason(media: str, table: pa.Table, reason: str) -> None:
    assert read_reason(encode(table, media), media) == reason


@MEDIA
def test_truncated_and_foreign_files_are_malformed(media: str) -> None:
    data = encode(pa.table({"x": pa.array(np.arange(1000.0))}), media)
    for length in (1, 4, 100, len(data) // 2, len(data) - (20 if media == ARROW else 1)):
        assert read_reason(data[:length], media, slots=1000) == "malformed"
    for foreign in (b"x\n1\n", bytes(1000), b"PAR1" + bytes(100) + b"PAR1"):
        assert read_reason(foreign, media) == "malformed"
    assert read_reason(b"", media) == "empty"


@MEDIA
def test_file_over_its_caps_is_too_large(media: str) -> None:
    data = encode(pa.table({"x": pa.array(np.arange(1000.0))}), media)
    assert read_reason(data, media, slots=1000, caps=Caps(999, 1 << 30)) == "too_large"
    assert read_reason(data, media, slots=1000, caps=Caps(1000, 7999)) == "too_large"


@MEDIA
def test_w14_bad_utf8_spoils_a_cell_only(media: str) -> None:
    """W14: invalid UTF-8 makes one row null, for every type of the column."""
    raw = pa.array([b"a", b"\xff\xfe", "ä".encode()])
    text = raw.view(pa.string())
    for cells in (text, pa.DictionaryArray.from_arrays([0, 1, 2], text)):
        result = read_stored(encode(pa.table({"x": cells}), media), media, [WORD])
        assert result == {"x": [1, 0, 2], "_present": [1, 0, 1]}


def test_streams_with_indices_or_offsets_out_of_range_are_malformed() -> None:
    """Offsets and indices are checked before they are used."""
    words, indices = pa.array(["aa"] * 8), pa.array([5, 6, 7], pa.int32())
    keyed = pa.DictionaryArray.from_arrays(indices, words)
    for cells, old in ((pa.array(["a", "ä"]), (0, 1, 3)), (keyed, (5, 6, 7))):
        data = encode(pa.table({"x": cells}), ARROW)
        layout = np.array(old, dtype=np.int32).tobytes()
        assert data.count(layout) == 1
        for new in ((*old[:2], 1 << 20), (old[0], -1, old[2])):
            hostile = data.replace(layout, np.array(new, dtype=np.int32).tobytes())
            assert read_reason(hostile, ARROW, [WORD]) == "malformed"


@pytest.mark.parametrize(
    "field", [parquet.NUM_ROWS, parquet.GROUP_ROWS, parquet.NUM_VALUES], ids=["file", "group", "column"]
)
def test_row_counts_that_disagree_are_malformed(field: int) -> None:
    """The library would leave out rows beyond the file's count."""
    data = encode(pa.table({"x": [1.0, 2.0, 3.0]}), PARQUET, store_schema=False)

    def falsify(footer: parquet.Footer) -> None:
        group = parquet.groups(footer)[0]
        counts = {parquet.NUM_ROWS: footer, parquet.GROUP_ROWS: group, parquet.NUM_VALUES: parquet.column_of(group)}
        counts[field][field].value = 2

    assert read_stored(parquet.rewritten(data, lambda _: None), PARQUET, [REAL])["x"][:3] == [1, 2, 3]
    assert read_reason(parquet.rewritten(data, falsify), PARQUET) == "malformed"


def test_footer_over_its_limit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode(pa.table({"x": [1.0, 2.0, 3.0]}), PARQUET)
    size = int.from_bytes(data[-8:-4], "little")
    monkeypatch.setattr(arrow_source, "FOOTER_BYTES", size)
    assert read_stored(data, PARQUET, [REAL])["x"][:3] == [1, 2, 3]
    monkeypatch.setattr(arrow_source, "FOOTER_BYTES", size - 1)
    assert read_reason(data, PARQUET) == "too_large"


def test_many_batches_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_source, "ARROW_BATCH_ROWS", 7)
    monkeypatch.setattr(arrow_source, "PARQUET_BATCH_ROWS", 7)
    column = Column("x", "real", 0.0, 1000.0)
    table = pa.table({"x": np.arange(100.0)})
    for data, media in ((encode(table, PARQUET, row_group_size=30), PARQUET), (encode(table, ARROW), ARROW)):
        assert read_stored(data, media, [column], 100)["x"] == list(range(100))
