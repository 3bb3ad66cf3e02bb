"""An upload stops if more rows than allowed would be null."""

import io
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from corevault import InvalidArgument, TooManyNullRows

from tests.client.fake import Script, ok
from tests.client.sources import DECLARED, ROWS, SCHEMA, make_parquet, upload


def test_more_null_rows_than_allowed_stop_the_upload() -> None:
    """By default one row of a hundred may be null; two may not."""
    frame = pd.DataFrame({"age": [30] * 100, "sex": ["F"] * 100, "ill": [1] * 100})
    with pytest.warns(UserWarning, match="sex: 1 cell is not among the declared categories"):
        upload(frame.assign(sex=["X"] + ["F"] * 99))
    coded = frame.assign(sex=["X", "Y"] + ["F"] * 98)
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(TooManyNullRows, match=r"2 of 100 rows .*\n.*sex: 2 miss") as caught:
        client.datasets.upload("ds_1", coded)
    assert [request.method for request in script.seen] == ["GET"]
    assert (caught.value.check.null_share, caught.value.max_null_share) == (0.02, 0.01)
    with pytest.warns(UserWarning, match="sex: 2 cells are not among"):
        assert all(upload(coded, max_null_share=allowed).bodies[-1] for allowed in (0.02, 1.0))
    assert upload(coded, max_null_share=None).bodies[-1]


@pytest.mark.parametrize("kind", ["path", "file", "bytes", "parquet"])
def test_files_are_checked_before_anything_is_sent(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS | {"sex": ["female", "male", "female"]})
    content = frame.to_csv(index=False).encode()
    (tmp_path / "t.csv").write_bytes(content)
    sources = {"path": tmp_path / "t.csv", "file": io.BytesIO(content), "bytes": content}
    sources["parquet"] = make_parquet(pa.Table.from_pandas(frame))
    script = Script([ok(DECLARED)])
    with script.client() as client, pytest.raises(TooManyNullRows, match="3 of 3 rows"):
        client.datasets.upload("ds_1", sources[kind])
    assert [(request.method, body) for request, body in zip(script.seen, script.bodies, strict=True)] == [("GET", b"")]


@pytest.mark.parametrize("share", ["1%", -0.1, 5, float("nan"), True])
def test_an_invalid_share_is_refused(share: Any) -> None:
    with pytest.raises(InvalidArgument, match="max_null_share"):
        upload(pd.DataFrame(ROWS), max_null_share=share)


def test_a_unit_out_of_its_bounds_makes_its_row_null() -> None:
    """The server clamps no unit, because that would merge different units."""
    unit = {"kind": "column", "column": "age", "max_rows": 2}
    declared = DECLARED | {"privacy_unit": unit}
    script = Script([ok(declared)])
    with script.client() as client, pytest.raises(TooManyNullRows, match="1 of 3 rows") as refusal:
        client.datasets.upload("ds_1", ROWS | {"age": [20, 95, 40]})
    assert "age: 1 value is outside the declared bounds 0 to 90. It counts as missing, because" in str(refusal.value)
    check = SCHEMA.check(ROWS | {"age": [20, 95, 96]}, privacy_unit=unit)
    assert (check.null_rows, check.columns["age"].clamped) == (2, 0)
    assert check.advice[0].startswith("age: 2 values are outside the declared bounds 0 to 90. They count as missing")


def test_a_row_as_the_unit_clamps_values_out_of_their_bounds() -> None:
    check = SCHEMA.check(ROWS | {"age": [20, 95, 40]}, privacy_unit={"kind": "row"})
    assert (check.null_rows, check.columns["age"].clamped) == (0, 1)


def test_a_unit_whose_column_is_not_declared_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"one of the declared columns \(age, sex, ill\)"):
        SCHEMA.check(ROWS, privacy_unit={"kind": "column", "column": "pid", "max_rows": 2})


def test_ragged_rows_count_as_null_rows_and_blank_lines_do_not() -> None:
    check = SCHEMA.check(b"\xef\xbb\xbfage,sex,ill\r\n20,F,1\r\n\r\n30,M\r\n40,F,0,9\r\n50,\xff,1\r\n60,M,1")
    assert (check.rows, check.null_rows) == (5, 3)


def test_a_table_without_rows_has_no_null_rows() -> None:
    check = SCHEMA.check(pd.DataFrame(ROWS).iloc[:0])
    assert (check.rows, check.null_rows, check.null_share) == (0, 0, 0.0)
