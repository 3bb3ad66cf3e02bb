"""Cells match numbers and categories as they do on the server."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corevault import Column, Schema, binary, categorical, integer, real
from corevault._cells import Categories

from tests.client.sources import make_arrow, make_parquet


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
    source = {"parquet": make_parquet(table), "arrow": make_arrow(table), "pyarrow table": table}[kind]
    assert Schema(categorical("code", ["1", "2"])).check(source).null_rows == code.count(None)


def test_a_column_of_codes_with_a_gap_keeps_its_rows() -> None:
    """pandas turns a column of whole numbers into floats once a cell is missing: 1 is written as 1.0."""
    frame = pd.DataFrame({"code": [1, 2, None, 1], "x": [0.5] * 4})
    check = Schema(categorical("code", ["1", "2"]), real("x", 0, 1)).check(frame)
    assert (check.rows, check.null_rows) == (4, 1)


@pytest.mark.parametrize("cell", ["1_0", "٣", "\x1c3", "3\x1f", "\xa03", "inf", "nan", "0x3", "1e999"])
@pytest.mark.parametrize("column", [real("x", 0, 10), integer("x", 0, 10), binary("x")], ids=lambda column: column.type)
def test_numbers_that_only_python_reads_are_missing(column: Column, cell: str) -> None:
    assert Schema(column).check({"x": [cell]}).null_rows == 1
