"""Every kind of table is checked, and then sent with its media type."""

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corevault import CorevaultError, InvalidArgument, UnreadableSource, WrongType
from corevault._formats import ARROW_STREAM, CSV, PARQUET
from corevault._upload import prepare

from tests.client.fake import DATASET, Script, ok
from tests.client.sources import DECLARED, ROWS, SCHEMA, make_arrow, make_parquet, make_sources, upload


@pytest.mark.parametrize("kind", make_sources(ROWS))
def test_every_kind_of_table_has_the_same_check(kind: str) -> None:
    rows: dict[str, list[Any]] = {
        "age": [20, 95, None, 40],
        "sex": ["F", " M ", "F", "X"],
        "ill": [True, False, True, None],
    }
    check = SCHEMA.check(make_sources(rows)[kind])
    assert (check.rows, check.null_rows, check.absent, check.unknown) == (4, 2, (), ())
    assert {name: (each.missing, each.clamped) for name, each in check.columns.items()} == {
        "age": (1, 1),
        "sex": (1, 0),
        "ill": (1, 0),
    }


@pytest.mark.parametrize("kind", make_sources(ROWS))
def test_every_kind_of_table_is_uploaded_under_its_type(kind: str) -> None:
    script = upload(make_sources(ROWS)[kind])
    expected = {"parquet": PARQUET, "arrow": ARROW_STREAM}.get(kind.removesuffix(" file"), CSV)
    assert script.seen[-1].headers["content-type"] == expected
    if expected == CSV:
        sent = pd.read_csv(io.BytesIO(script.bodies[-1]))
        assert {name: sent[name].tolist() for name in sent} == ROWS
    else:
        assert script.bodies[-1] == make_sources(ROWS)[kind.removesuffix(" file")]


class Pipe(io.RawIOBase):
    """A file that cannot seek."""

    def __init__(self, content: bytes) -> None:
        self._inner = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(min(size, 5))


@pytest.mark.parametrize(("content", "expected"), [(make_parquet(pa.table(ROWS)), PARQUET), (b"age\n1\n", CSV)])
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
    content = make_parquet(pa.table(ROWS))
    file = io.BytesIO(b"skipped" + content)
    file.seek(7)
    script = upload(file)
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
        (pd.DataFrame(ROWS)["age"], "to_frame"),
        (pa.chunked_array([[1]]), "not a table"),
        (pa.table(ROWS).to_reader(), "read only once"),
        (np.ones((2, 2)), "no column names"),
        ([{"age": 1}], "list of rows"),
        ((text for text in ["age", "1"]), "not bytes"),
        ({b"age"}, "type set"),
        (pd.DataFrame, "class DataFrame"),
        (None, "got None"),
        ({"age": [1], "sex": ["F", "M"], "ill": [1, 1]}, "different lengths"),
        ({"age": 1, "sex": "F", "ill": 1}, "must be a list"),
        ({"age": {1}, "sex": ["F"], "ill": [1]}, "must be a list"),
        ({"age": (n for n in [1]), "sex": ["F"], "ill": [1]}, "must be a list"),
        ({"age": np.ones((1, 2)), "sex": ["F"], "ill": [1]}, "one dimension"),
        (make_parquet(pa.table(ROWS | {"age": [dt.date(2026, 1, 1)] * 3})), "Arrow type date32"),
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
    [(make_parquet(pa.table(ROWS)), CSV), (make_arrow(pa.table(ROWS)), PARQUET), (b"age\n", "csv"), (b"age\n", 3)],
)
def test_a_wrong_media_type_is_refused(content: bytes, media_type: Any) -> None:
    with pytest.raises(InvalidArgument, match="media_type"):
        prepare(content, media_type)


def test_a_csv_whose_first_column_is_named_par1_is_csv() -> None:
    assert prepare(b"PAR1,PAR2\n1,2\n", "text/csv; charset=utf-8").media_type == "text/csv; charset=utf-8"
