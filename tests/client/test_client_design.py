"""New rows in the design's coordinates: the client reads cells by the server's rules."""

import dataclasses
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corevault import (
    Column,
    Dataset,
    DesignColumn,
    InvalidArgument,
    MissingColumn,
    Schema,
    WrongType,
    binary,
    categorical,
    design_matrix,
    integer,
    real,
)

from app.inference.core.facts import Column as Declared
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import ModelSpec
from app.inference.core.problems import make_problem
from app.inference.core.row_source import PRESENT
from tests.client.fake import DATASET
from tests.client.sources import Stream
from tests.client.test_client_check import CELLS
from workers.enclave.cells import parse_cells

AGE = DesignColumn(
    name="age", source="age", transform={"kind": "affine", "type": "integer", "center": 5.0, "scale": 5.0}
)
SEX = DesignColumn(name="sex=M", source="sex", transform={"kind": "indicator", "value": "M", "reference": "F"})
ILL = DesignColumn(
    name="ill", source="ill", transform={"kind": "affine", "type": "binary", "center": 0.5, "scale": 0.5}
)
ONE = DesignColumn(name="intercept", source=None, transform={"kind": "constant", "value": 1})
DESIGN = (AGE, SEX, ILL, ONE)
OLD = tuple(
    dataclasses.replace(
        column,
        transform={name: column.transform[name] for name in column.transform if name not in ("type", "reference")},
    )
    for column in DESIGN
)
"""The design as releases of version 0.1.0 state it."""
SCHEMA = Schema(integer("age", 0, 10), categorical("sex", ["F", "M"]), binary("ill"))
ROWS: dict[str, list[Any]] = {"age": [0, 10, 5], "sex": ["M", "F", "M"], "ill": [True, False, True]}
EXPECTED = [[-1.0, 1, 1, 1], [1, 0, -1, 1], [0, 1, 1, 1]]
FEATURES = (
    real("x", 0, 10), integer("x", 0, 10), binary("x"), categorical("x", ["a", "b", "7", " a"]),
    real("x", 0, 10, impute=5.0), integer("x", 0, 10, impute=5), binary("x", impute=True),
    categorical("x", ["b", "a"], impute="a"),
)  # fmt: skip


class Frame(Stream):
    """A frame like that of polars: with the names of its columns, and each column by its name."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        self.columns = table.column_names
        self._columns = {name: table[name].to_numpy() for name in self.columns}

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


@pytest.mark.parametrize("column", FEATURES, ids=repr)
def test_new_rows_have_the_coordinates_of_the_server(column: Column) -> None:
    """Null rows are NaN; every other row has the server's coordinates."""
    members: dict[str, Any] = dataclasses.asdict(column) | {"categories": column.categories or ()}
    declared = (Declared(**members), Declared("y", "real", 0, 1))
    spec = ModelSpec("linear-regression", ("x",), "y")
    design = make_problem(spec, DeclaredFacts(declared, 100, {"kind": "row"}, "private", 1e-6)).design
    text = ["" if pd.isna(cell) else str(cell) for cell in CELLS]
    stored = parse_cells(declared, {"x": pa.array(text), "y": pa.array(["0"] * len(text))}, len(text))
    rows, _, present = design.encode(stored)
    columns = [
        DesignColumn(name=each.name, source=each.source, transform=dict(each.transform)) for each in design.columns
    ]
    matrix = design_matrix(columns, {"x": CELLS}, schema=Schema(column), null_rows="nan")
    if column.impute is None:
        np.testing.assert_array_equal(design_matrix(columns, {"x": CELLS}, null_rows="nan"), matrix)
    assert (np.isnan(matrix).all(axis=1) == ~present).all()
    assert np.isnan(matrix).any(axis=1).tolist() == np.isnan(matrix).all(axis=1).tolist()
    np.testing.assert_allclose(matrix[present], rows[present], atol=1e-6)
    assert stored[PRESENT].sum() == present.sum()


@pytest.mark.parametrize(("kind", "value"), [("real", 2.0), ("real", -0.25), ("integer", 2)])
def test_other_values_of_a_constant_column_have_its_coordinate(kind: Literal["real", "integer"], value: float) -> None:
    """The server clamps all numbers to the only value. The design states this, because its scale does not."""
    declared = (Declared("x", kind, value, value), Declared("y", "real", 0, 1))
    spec = ModelSpec("linear-regression", ("x",), "y")
    design = make_problem(spec, DeclaredFacts(declared, 100, {"kind": "row"}, "private", 1e-6)).design
    cells = ["2", "-0.25", "2.5", "1e9", "", "x"]
    stored = parse_cells(declared, {"x": pa.array(cells), "y": pa.array(["0"] * len(cells))}, len(cells))
    rows, _, present = design.encode(stored)
    columns = [
        DesignColumn(name=each.name, source=each.source, transform=dict(each.transform)) for each in design.columns
    ]
    matrix = design_matrix(columns, {"x": cells}, null_rows="nan")
    np.testing.assert_array_equal(matrix[present], rows[present])
    assert (np.isnan(matrix).all(axis=1) == ~present).all()


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).convert_dtypes(),
        pd.DataFrame(ROWS).astype({"sex": "category", "age": "Int8", "ill": "boolean"}),
        pd.DataFrame(ROWS).astype({"sex": object, "age": str, "ill": object}),
        pa.table(ROWS),
        pa.table(ROWS).to_batches()[0],
        Stream(pa.table(ROWS)),
        Frame(pa.table(ROWS)),
        ROWS,
        {name: np.array(values) for name, values in ROWS.items()},
        {"age": ["0", " 10 ", "5.0"], "sex": [" M", "F ", "M"], "ill": ["TRUE", "0", " 1"]},
        {"age": [np.float32(0), 1e9, np.int64(5)], "sex": list("MFM"), "ill": [np.True_, np.False_, 1.0]},
    ],
    ids=lambda table: type(table).__name__,
)
@pytest.mark.parametrize("schema", [None, SCHEMA, "dataset"])
def test_every_kind_of_table_gives_the_same_matrix(table: Any, schema: Any) -> None:
    if schema == "dataset":
        schema = Dataset.from_json(DATASET | {"columns": SCHEMA.to_json()})
    np.testing.assert_array_equal(design_matrix(DESIGN, table, schema=schema), EXPECTED)


@pytest.mark.parametrize("cell", [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), "", "  "])
@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize("name", ROWS)
def test_a_missing_cell_is_never_the_reference_level(cell: object, schema: Schema | None, name: str) -> None:
    rows = ROWS | {name: [cell, *ROWS[name][1:]]}
    with pytest.raises(InvalidArgument, match=f"{name}' has missing values"):
        design_matrix(DESIGN, rows, schema=schema)
    matrix = design_matrix(DESIGN, pd.DataFrame(rows), schema=schema, null_rows="nan")
    assert np.isnan(matrix[0]).all()
    np.testing.assert_array_equal(matrix[1:], EXPECTED[1:])


@pytest.mark.parametrize("label", [" M ", "M\t"])
def test_spaces_around_a_label_do_not_count(label: str) -> None:
    for schema in (None, SCHEMA):
        matrix = design_matrix(DESIGN, ROWS | {"sex": [label, "F", "M"]}, schema=schema)
        np.testing.assert_array_equal(matrix, EXPECTED)


@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("sex", ["X", "X", "M"]), ("sex", ["f", "F", "M"]), ("sex", ["1", "M", "F"]), ("age", [2.5, 1, 2]),
        ("age", ["2.5", "1", "2"]), ("ill", [0.5, 1, 0]), ("ill", [2, 1, 0]), ("ill", ["yes", "no", "no"]),
    ],
)  # fmt: skip
def test_a_cell_that_is_not_declared_is_missing(schema: Schema | None, name: str, cells: list[Any]) -> None:
    """An unknown label never counts as the reference category."""
    with pytest.raises(InvalidArgument, match=f"{name}' has missing values"):
        design_matrix(DESIGN, ROWS | {name: cells}, schema=schema)
    matrix = design_matrix(DESIGN, ROWS | {name: cells}, schema=schema, null_rows="nan")
    assert np.isnan(matrix[0]).all()


def test_an_unknown_label_takes_the_declared_impute_value() -> None:
    schema = Schema(integer("age", 0, 10, impute=5), categorical("sex", ["F", "M"], impute="M"), binary("ill"))
    rows = {"age": [3.5, "x", None], "sex": ["X", pd.NA, "F"], "ill": [1, 0, 1]}
    expected = [[0, 1, 1, 1], [0, 1, -1, 1], [0, 0, 1, 1]]
    np.testing.assert_array_equal(design_matrix(DESIGN, rows, schema=schema), expected)


@pytest.mark.parametrize("cell", [1, 1.0, "1", "1.0", " 01 ", np.float64(1), np.int8(1), True, "true"])
def test_a_cell_matches_the_category_of_the_same_number(cell: object) -> None:
    design = [DesignColumn(name="c=1", source="c", transform={"kind": "indicator", "value": "1", "reference": "0"})]
    for schema in (None, Schema(categorical("c", ["0", "1"]))):
        for zero in (0, 0.0, "0"):
            np.testing.assert_array_equal(design_matrix(design, {"c": [cell, zero]}, schema=schema), [[1], [0]])
    np.testing.assert_array_equal(design_matrix(design, {"c": np.array([1.0, 0.0])}), [[1], [0]])


@pytest.mark.parametrize(
    "ages",
    [
        np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[ns]"),
        np.array([1, 2, 3], dtype="timedelta64[ns]"),
        pd.Series(pd.date_range("2020-01-01", periods=3, tz="UTC")),
        np.array([1j, 2, 3]),
        [np.inf, 1, 2],
        ["1,5", "2", "3"],
        [True, False, True],
    ],
)
def test_cells_that_are_not_numbers_are_refused(ages: Any) -> None:
    """Times are not numbers of nanoseconds. The server reads an infinity as a missing cell."""
    for schema in (None, SCHEMA):
        with pytest.raises(InvalidArgument, match="age' has missing values"):
            design_matrix(DESIGN, ROWS | {"age": ages}, schema=schema)


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"table": None}, WrongType, "got None"),
        ({"table": [[1, "M", 1]]}, WrongType, "type list"),
        ({"table": np.ones((3, 3))}, WrongType, "type ndarray"),
        ({"table": pd.DataFrame(ROWS)["age"]}, WrongType, "type Series"),
        ({"table": {"age": [1]}}, MissingColumn, "no column 'sex'"),
        ({"table": ROWS | {"age": [1]}}, InvalidArgument, "different lengths"),
        ({"table": ROWS | {"age": 1}}, WrongType, "must be a list"),
        ({"table": ROWS | {"age": {1, 2, 3}}}, WrongType, "must be a list"),
        ({"table": ROWS | {"age": [[1], [2], [3]]}}, WrongType, "one dimension"),
        ({"table": pd.concat([pd.DataFrame(ROWS)] * 2, axis=1)}, InvalidArgument, "appears twice"),
        ({"schema": "clinic"}, WrongType, "schema must be"),
        ({"schema": Schema(real("z", 0, 1))}, InvalidArgument, "does not declare 'age'"),
        ({"schema": Schema(real("age", 0, 1), real("sex", 0, 1), binary("ill"))}, InvalidArgument, "another type"),
        (
            {"schema": Schema(real("age", 0, 1), categorical("sex", ["a", "b"]), binary("ill"))},
            InvalidArgument,
            "other categories",
        ),
        ({"null_rows": "drop"}, InvalidArgument, "null_rows must be"),
    ],
)
def test_invalid_arguments_are_refused(change: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    given = {"table": ROWS, **change}
    with pytest.raises(kind, match=sentence):
        design_matrix(DESIGN, given.pop("table"), **given)


@pytest.mark.parametrize("age", [0, 10, 3])
@pytest.mark.parametrize("ill", [True, "true", 1, " 0 ", 0.0])
def test_an_older_design_decides_cells_that_every_declaration_allows(age: float, ill: object) -> None:
    rows = {"age": [age, None], "sex": ["M", "M"], "ill": [ill, ill]}
    expected = design_matrix(DESIGN, rows, null_rows="nan")
    np.testing.assert_array_equal(design_matrix(OLD, rows, null_rows="nan"), expected)
    assert np.isfinite(expected[0]).all()
    np.testing.assert_array_equal(design_matrix(OLD, rows, schema=SCHEMA, null_rows="nan"), expected)


@pytest.mark.parametrize(
    ("name", "cells", "sentence"),
    [
        ("sex", ["F", "F", "M"], "does not state the reference category"),
        ("sex", ["X", "M", "M"], "does not state the reference category"),
        ("age", [2.5, 1, 2], "does not state the column's type"),
        ("ill", [0.5, 1, 0], "does not state the column's type"),
        ("ill", [2, 1, 0], "does not state the column's type"),
    ],
)
def test_an_older_design_refuses_cells_that_it_does_not_decide(name: str, cells: list[Any], sentence: str) -> None:
    rows = ROWS | {"sex": ["M", "M", "M"]} | {name: cells}
    for null_rows in ("refuse", "nan"):
        with pytest.raises(InvalidArgument, match=f"{name}' .*{sentence}.* schema="):
            design_matrix(OLD, rows, null_rows=null_rows)


def test_an_older_design_with_fractional_bounds_is_of_a_real_column() -> None:
    design = [DesignColumn(name="age", source="age", transform={"kind": "affine", "center": 5.25, "scale": 5.0})]
    np.testing.assert_allclose(design_matrix(design, {"age": [2.5]}), [[-0.55]])
