"""Every kind of table is checked, and then sent with its media type."""

import datetime as dt
import io
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from corevault import (
    Column,
    CorevaultError,
    Dataset,
    InvalidArgument,
    Schema,
    TooManyNullRows,
    UnreadableSource,
    WrongType,
    binary,
    categorical,
    integer,
    real,
)
from corevault._cells import Categories
from corevault._formats import ARROW_STREAM, CSV, PARQUET
from corevault._upload import prepare

from tests.client.fake import DATASET, Script, ok

COLUMNS = [
    {"name": "age", "type": "integer", "lower": 0, "upper": 90},
    {"name": "sex", "type": "categorical", "categories": ["F", "M"]},
    {"name": "ill", "type": "binary"},
]
DECLARED = DATASET | {"columns": COLUMNS}
SCHEMA = Dataset.from_json(DECLARED).schema
ROWS: dict[str, list[Any]] = {"age": [20, 30, 40], "sex": ["F", "M", "F"], "ill": [True, False, True]}


class Stream:
    """A table with only the Arrow stream interface, like a frame of another library."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _arrow(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with pyarrow.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def _sources(rows: dict[str, list[Any]]) -> dict[str, object]:
    table, frame = pa.table(rows), pd.DataFrame(rows)
    return {
        "pandas": frame,
        "categorical dtype": frame.assign(sex=frame["sex"].astype("category")),
        "nullable dtypes": frame.convert_dtypes(),
        "pyarrow table": table,
        "record batch": table.to_batches()[0],
        "stream interface": Stream(table),
        "dictionary encoding": table.set_column(1, "sex", table["sex"].dictionary_encode()),
        "mapping of lists": rows,
        "mapping of arrays": {name: np.array(values) for name, values in rows.items()},
        "mapping of series": {name: frame[name] for name in frame},
        "csv": frame.to_csv(index=False).encode(),
        "csv file": io.BytesIO(frame.to_csv(index=False).encode()),
        "parquet": _parquet(table),
        "parquet file": io.BytesIO(_parquet(table)),
        "arrow": _arrow(table),
        "arrow file": io.BytesIO(_arrow(table)),
    }


def _upload(source: object, **options: Any) -> Script:
    script = Script([ok(DECLARED), ok(DECLARED, 202)])
    with script.client() as client:
        client.datasets.upload("ds_1", source, **options)
    return script


@pytest.mark.parametrize("kind", _sources(ROWS))
def test_every_kind_of_table_has_the_same_check(kind: str) -> None:
    rows: dict[str, list[Any]] = {
        "age": [20, 95, None, 40],
        "sex": ["F", " M ", "F", "X"],
        "ill": [True, False, True, None],
    }
    check = SCHEMA.check(_sources(rows)[kind])
    assert (check.rows, check.null_rows, check.absent, check.unknown) == (4, 2, (), ())
    assert {name: (each.missing, each.clamped) for name, each in check.columns.items()} == {
        "age": (1, 1),
        "sex": (1, 0),
        "ill": (1, 0),
    }


@pytest.mark.parametrize("kind", _sources(ROWS))
def test_every_kind_of_table_is_uploaded_under_its_type(kind: str) -> None:
    script = _upload(_sources(ROWS)[kind])
    expected = {"parquet": PARQUET, "arrow": ARROW_STREAM}.get(kind.removesuffix(" file"), CSV)
    assert script.seen[-1].headers["content-type"] == expected
    if expected == CSV:
        sent = pd.read_csv(io.BytesIO(script.bodies[-1]))
        assert {name: sent[name].tolist() for name in sent} == ROWS
    else:
        assert script.bodies[-1] == _sources(ROWS)[kind.removesuffix(" file")]


class Pipe(io.RawIOBase):
    """A file that cannot seek."""

    def __init__(self, content: bytes) -> None:
        self._inner = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(min(size, 5))


@pytest.mark.parametrize(("content", "expected"), [(_parquet(pa.table(ROWS)), PARQUET), (b"age\n1\n", CSV)])
@pytest.mark.parametrize(
    "stream", [Pipe, lambda content: iter([b"", content[:6], content[6:]])], ids=["pipe", "chunks"]
)
def test_the_start_of_a_stream_shows_its_format(
    stream: Callable[[bytes], object], content: bytes, expected: str
) -> None:
    script = Script([ok(DATASET, 202)])
    with script.client() as client:
        client.datasets.upload("ds_1", stream(content))
    assert (script.seen[0].headers["content-type"], script.bodies) == (expected, [content])


def test_a_parquet_file_is_sent_from_its_current_position() -> None:
    content = _parquet(pa.table(ROWS))
    file = io.BytesIO(b"skipped" + content)
    file.seek(7)
    script = _upload(file)
    assert (script.seen[-1].headers["content-type"], script.bodies[-1]) == (PARQUET, content)
    assert not file.closed


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (io.StringIO("age\n1\n"), "text mode"),
        (b"", "source is empty"),
        (iter([]), "source is empty"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"ARROW1\x00\x00", "Arrow streams"),
        ("age\n1".encode("utf-16"), "save it as UTF-8"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"PAR1 and so on PAR1", "cannot be read"),
        (b"\xff\xff\xff\xff and so on", "cannot be read"),
        (b'age,sex,ill\n20,"F,1\n', "ends inside a quoted cell"),
        ("age,sex\n1,F\n", "text of a table"),
        ("", "path is empty"),
        ("nowhere.csv", "check that it exists"),
        (pd.DataFrame(), "no columns"),
        (pd.DataFrame(ROWS).iloc[:0], "no rows"),
        (pd.DataFrame(ROWS).set_index("age"), "reset_index"),
        (pd.DataFrame(ROWS).reset_index(), "not declared: index"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "several levels"),
        (pd.DataFrame(ROWS)["age"], "not a table"),
        (pa.chunked_array([[1]]), "not a table"),
        (pa.table(ROWS).to_reader(), "read only once"),
        (np.ones((2, 2)), "not bytes"),
        ([{"age": 1}], "not bytes"),
        ((text for text in ["age", "1"]), "not bytes"),
        ({b"age"}, "type set"),
        (pd.DataFrame, "class DataFrame"),
        (None, "got None"),
        ({"age": [1], "sex": ["F", "M"], "ill": [1, 1]}, "different lengths"),
        ({"age": 1, "sex": "F", "ill": 1}, "must be a list"),
        ({"age": {1}, "sex": ["F"], "ill": [1]}, "must be a list"),
        ({"age": (n for n in [1]), "sex": ["F"], "ill": [1]}, "must be a list"),
        ({"age": np.ones((1, 2)), "sex": ["F"], "ill": [1]}, "one dimension"),
        (_parquet(pa.table(ROWS | {"age": [dt.date(2026, 1, 1)] * 3})), "Arrow type date32"),
    ],
)
def test_an_invalid_source_is_refused(source: Any, sentence: str) -> None:
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(CorevaultError, match=sentence) as caught:
        client.datasets.upload("ds_1", source)
    assert isinstance(caught.value, InvalidArgument)
    assert {request.method for request in script.seen} <= {"GET"}


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    closed = io.BytesIO(b"age\n")
    closed.close()
    for source in (closed, tmp_path, tmp_path / "none.csv", "a" * 5000):
        with pytest.raises(UnreadableSource) as caught:
            prepare(source)
        assert isinstance(caught.value, OSError)
    with (tmp_path / "t.csv").open("wb") as written, pytest.raises(UnreadableSource, match="writing only"):
        prepare(written)
    with (tmp_path / "t.csv").open() as text, pytest.raises(WrongType, match="open\\(path, 'rb'\\)"):
        prepare(text)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(_parquet(pa.table(ROWS)), CSV), (_arrow(pa.table(ROWS)), PARQUET), (b"age\n", "csv"), (b"age\n", 3)],
)
def test_a_wrong_media_type_is_refused(content: bytes, media_type: Any) -> None:
    with pytest.raises(InvalidArgument, match="media_type"):
        prepare(content, media_type)


def test_a_csv_whose_first_column_is_named_par1_is_csv() -> None:
    assert prepare(b"PAR1,PAR2\n1,2\n", "text/csv; charset=utf-8").media_type == "text/csv; charset=utf-8"


def test_more_null_rows_than_allowed_stop_the_upload() -> None:
    """By default one row of a hundred may be null; two may not."""
    frame = pd.DataFrame({"age": [30] * 100, "sex": ["F"] * 100, "ill": [1] * 100})
    _upload(frame.assign(sex=["X"] + ["F"] * 99))
    coded = frame.assign(sex=["X", "Y"] + ["F"] * 98)
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(TooManyNullRows, match=r"2 of 100 rows .*\n.*sex: 2 miss") as caught:
        client.datasets.upload("ds_1", coded)
    assert [request.method for request in script.seen] == ["GET"]
    assert (caught.value.check.null_share, caught.value.max_null_share) == (0.02, 0.01)
    for allowed in (0.02, 1.0, None):
        assert _upload(coded, max_null_share=allowed).bodies[-1]


@pytest.mark.parametrize("kind", ["path", "file", "bytes", "parquet"])
def test_files_are_checked_before_anything_is_sent(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS | {"sex": ["female", "male", "female"]})
    content = frame.to_csv(index=False).encode()
    (tmp_path / "t.csv").write_bytes(content)
    sources = {"path": tmp_path / "t.csv", "file": io.BytesIO(content), "bytes": content}
    sources["parquet"] = _parquet(pa.Table.from_pandas(frame))
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(TooManyNullRows, match="3 of 3 rows"):
        client.datasets.upload("ds_1", sources[kind])
    assert [(request.method, body) for request, body in zip(script.seen, script.bodies, strict=True)] == [("GET", b"")]


@pytest.mark.parametrize("share", ["1%", -0.1, 5, float("nan"), True])
def test_an_invalid_share_is_refused(share: Any) -> None:
    with pytest.raises(InvalidArgument, match="max_null_share"):
        _upload(pd.DataFrame(ROWS), max_null_share=share)


def test_a_unit_out_of_its_bounds_makes_its_row_null() -> None:
    """The server clamps no unit, because that would merge different units."""
    declared = DECLARED | {"privacy_unit": {"kind": "column", "column": "age", "max_rows": 2}}
    script = Script([ok(declared)])
    with script.client() as client, pytest.raises(TooManyNullRows, match="1 of 3 rows"):
        client.datasets.upload("ds_1", ROWS | {"age": [20, 95, 40]})


def test_ragged_rows_count_as_null_rows_and_blank_lines_do_not() -> None:
    check = SCHEMA.check(b"\xef\xbb\xbfage,sex,ill\r\n20,F,1\r\n\r\n30,M\r\n40,F,0,9\r\n50,\xff,1\r\n60,M,1")
    assert (check.rows, check.null_rows) == (5, 3)


def test_a_table_without_rows_has_no_null_rows() -> None:
    check = SCHEMA.check(pd.DataFrame(ROWS).iloc[:0])
    assert (check.rows, check.null_rows, check.null_share) == (0, 0, 0.0)


@pytest.mark.parametrize(
    "cell", [1, 1.0, "1", "1.0", " 1 ", "01", "1e0", np.int64(1), np.float32(1), "+1", True, np.True_, "TRUE", " true"]
)
def test_a_number_is_the_category_of_the_same_value(cell: object) -> None:
    schema = Schema(categorical("code", ["2", "1"]))
    assert schema.check({"code": [cell]}).null_rows == 0
    assert schema.check({"code": [cell, "1.5"]}).null_rows == 1


@pytest.mark.parametrize("cell", ["1_0", "٣", "nan", "inf", "", None, pd.NA, pd.NaT, float("nan"), "one", "0x1"])
def test_a_cell_that_is_not_a_number_does_not_match_by_value(cell: object) -> None:
    schema = Schema(categorical("code", ["10", "3", "1", "0"]))
    assert schema.check({"code": [cell]}).null_rows == 1


@pytest.mark.parametrize(
    ("categories", "cell", "code"),
    [
        (["1", "1.0"], "1.0", 1.0),
        (["1", "1.0"], " 1 ", 0.0),
        (["1", "1.0"], "1e0", None),
        (["1", "true"], "True", None),
        (["true", "false"], "0", 1.0),
        (["0", "-0"], "0.0", None),
        (["9007199254740991"], "9007199254740991.0", 0.0),
        (["9007199254740992"], "9007199254740992.0", None),
        ([" 1", "1"], " 1", 0.0),
        ([" 1", "1"], "1 ", 1.0),
        (["1"], "0.9999999999999999", None),
    ],
)
def test_a_category_matches_by_text_and_then_by_a_unique_value(
    categories: list[str], cell: str, code: float | None
) -> None:
    """A value of two categories matches neither. A value that may be rounded matches none."""
    (index,) = Categories(categories).codes([cell])
    assert index == code if code is not None else np.isnan(index)


def test_a_number_of_a_file_matches_by_its_value_alone() -> None:
    codes = Categories(["2.50", "1", "1.0", "0"]).codes(np.array([2.5, 1.0, -0.0, np.nan, 1e300]))
    np.testing.assert_array_equal(codes, [0, np.nan, 3, np.nan, np.nan])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "pyarrow table"])
@pytest.mark.parametrize("code", [[1, 2], [1.0, 2.0], ["1", "2"], [True, True], [1.0, None]])
def test_codes_of_every_type_are_categories(kind: str, code: list[Any]) -> None:
    table = pa.table({"code": code})
    source = {"parquet": _parquet(table), "arrow": _arrow(table), "pyarrow table": table}[kind]
    assert Schema(categorical("code", ["1", "2"])).check(source).null_rows == code.count(None)


def test_a_column_of_codes_with_a_gap_keeps_its_rows() -> None:
    """pandas turns a column of whole numbers into floats once a cell is missing: 1 is written as 1.0."""
    frame = pd.DataFrame({"code": [1, 2, None, 1], "x": [0.5] * 4})
    check = Schema(categorical("code", ["1", "2"]), real("x", 0, 1)).check(frame)
    assert (check.rows, check.null_rows) == (4, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_large_file_is_checked_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    numbers = [str(n % 90) for n in range(400_000)]
    table = pa.table({"n": numbers, "b": ["1"] * len(numbers)})
    path = tmp_path / f"t.{kind}"
    pq.write_table(table, path) if kind == "parquet" else table.to_pandas().to_csv(path, index=False)
    schema = Schema(integer("n", 0, 90), binary("b"))
    schema.check({"n": [1], "b": [1]})
    tracemalloc.start()
    try:
        check = schema.check(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (check.rows, check.null_rows) == (400_000, 0)
    assert peak < 8 << 20  # the rows as text take 50 MB


@pytest.mark.parametrize(("width", "limit"), [(2, 10_000), (200, 2_500)])
def test_a_parquet_file_is_read_in_batches_of_bounded_size(
    width: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has a limit of rows: one row group may hold the whole file."""
    limits: list[int] = []
    sizes: list[int] = []
    read = pq.ParquetFile.iter_batches

    def iter_batches(self: Any, batch_size: int = 65_536, **options: Any) -> Iterator[Any]:
        limits.append(batch_size)
        for batch in read(self, batch_size, **options):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    table = pa.table({f"c{index}": np.zeros(12_000) for index in range(width)})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=12_000)
    check = Schema(*(real(name, 0, 1) for name in table.column_names)).check(file.getvalue())
    assert (check.rows, check.null_rows) == (12_000, 0)
    assert limits == [limit]
    assert max(sizes) <= limit
    assert width * limit <= 500_000


@pytest.mark.parametrize("kind", ["csv file", "parquet file", "arrow file"])
def test_a_check_restores_the_position_of_a_file(kind: str) -> None:
    file = _sources(ROWS)[kind]
    assert isinstance(file, io.BytesIO)
    for _ in range(2):
        assert SCHEMA.check(file).rows == 3
        assert file.tell() == 0
    assert _upload(file).bodies[-1] == file.getvalue()


@pytest.mark.parametrize("cell", ["1_0", "٣", "\x1c3", "3\x1f", "\xa03", "inf", "nan", "0x3", "1e999"])
@pytest.mark.parametrize("column", [real("x", 0, 10), integer("x", 0, 10), binary("x")], ids=lambda column: column.type)
def test_numbers_that_only_python_reads_are_missing(column: Column, cell: str) -> None:
    assert Schema(column).check({"x": [cell]}).null_rows == 1


def test_a_one_shot_stream_is_refused_by_the_check() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"age\n1\n"

    with pytest.raises(WrongType, match="read only once"):
        SCHEMA.check(chunks())
