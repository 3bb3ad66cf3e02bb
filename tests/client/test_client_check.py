"""What the SDK says of a table before it is uploaded is what the enclave makes of it."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corevault import Column, Schema
from corevault.schema import binary, categorical, integer, real

from app.inference.core.facts import Column as Declared
from workers.enclave.cells import parse_cells

CELLS = [
    "", "1", "0", "7", "7.5", " 7 ", "-3", "1e3", "1e999", "nan", "inf", "true", "False", "TRUE ", "a", " a", "b ", "c",
    "A", "0x1", "1_0", "٣", ".5", "5.", "+2", "--2", "9" * 400, None, 3, 3.0, 2.5, True, float("nan"), float("inf"),
]  # fmt: skip
COLUMNS = (
    real("x", 0, 10), integer("n", 0, 10), binary("b"), categorical("c", ["a", "b", "7", " a"]),
    real("x", 0, 10, impute=5.0), integer("n", 0, 10, impute=5), binary("b", impute=True),
    categorical("c", ["b"], impute="b"),
)  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_it_counts_what_the_enclave_would_do(column: Column) -> None:
    frame = pd.DataFrame({column.name: pd.Series(CELLS, dtype=object)})
    told = Schema(column).check(frame)
    text = ["" if pd.isna(cell) else str(cell) for cell in CELLS]
    members: dict[str, Any] = dataclasses.asdict(column) | {"categories": column.categories or ()}
    declared, bare = Declared(**members), Declared(**members | {"impute": None})
    stored = parse_cells([declared], {column.name: pa.array(text)}, len(text))
    missing = parse_cells([bare], {column.name: pa.array(text)}, len(text))["_present"] == 0
    assert told.null_rows == int((stored["_present"] == 0).sum())
    assert told.columns[column.name].missing == int(missing.sum())


def test_clamped_cells_and_columns_that_do_not_fit() -> None:
    schema = Schema(real("x", 0, 10), integer("n", 0, 5))
    told = schema.check(pd.DataFrame({"x": [-1.0, 5.0, 11.0, np.nan], "y": [0, 0, 0, 0]}))
    assert (told.rows, told.null_rows, told.absent, told.unknown) == (4, 1, ("n",), ("y",))
    assert (told.columns["x"].missing, told.columns["x"].clamped) == (1, 2)
    assert str(told).splitlines() == [
        "1 of 4 rows would be null.",
        "n: no such column in the table",
        "y: not declared",
        "x: 1 missing, 2 clamped",
    ]


def test_a_wrongly_coded_table_is_seen_before_it_is_sent() -> None:
    told = Schema(categorical("sex", ["Female", "Male"])).check(pd.DataFrame({"sex": ["F", "M", "F"]}))
    assert told.null_rows == told.rows == 3
