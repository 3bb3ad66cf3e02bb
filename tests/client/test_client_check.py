"""The check before an upload agrees with the ingestion on the server."""

import dataclasses
import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from corevault import Column, Schema
from corevault._cells import Array, Categories, format_cell
from corevault._reading import open_rows
from corevault._upload import prepare
from corevault.errors import InvalidArgument, TooManyNullRows
from corevault.schema import binary, categorical, integer, real

from app.inference.core.facts import Column as Declared
from tests.factories import categories as cases
from workers.enclave.cells import match_categories, parse_cells

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
def test_counts_equal_those_of_the_enclave(column: Column) -> None:
    frame = pd.DataFrame({column.name: pd.Series(CELLS, dtype=object)})
    check = Schema(column).check(frame)
    text = ["" if pd.isna(cell) else str(cell) for cell in CELLS]
    members: dict[str, Any] = dataclasses.asdict(column) | {"categories": column.categories or ()}
    declared, bare = Declared(**members), Declared(**members | {"impute": None})
    stored = parse_cells([declared], {column.name: pa.array(text)}, len(text))
    missing = parse_cells([bare], {column.name: pa.array(text)}, len(text))["_present"] == 0
    assert check.null_rows == int((stored["_present"] == 0).sum())
    assert check.columns[column.name].missing == int(missing.sum())


def test_clamped_cells_and_undeclared_columns_are_counted() -> None:
    schema = Schema(real("x", 0, 10), integer("n", 0, 5))
    check = schema.check(pd.DataFrame({"x": [-1.0, 5.0, 11.0, np.nan], "y": [0, 0, 0, 0]}))
    assert (check.rows, check.null_rows, check.absent, check.unknown) == (4, 1, ("n",), ("y",))
    assert (check.columns["x"].missing, check.columns["x"].clamped) == (1, 2)
    assert str(check).splitlines() == [
        "1 of 4 rows would be null.",
        "n: no such column in the table",
        "y: not declared",
        "x: 1 missing, 2 clamped",
    ]


GROUP = (
    "work_a, work_b: in every row exactly one of them is 1. If the codebook agrees, declare one categorical "
    "column in their place."
)
HOT = {"work_a": [1, 0] * 10, "work_b": [0, 1] * 10, "n": [3] * 20, "ill": [1, 0] * 10}


@pytest.mark.parametrize("form", [dict, pd.DataFrame, lambda table: pd.DataFrame(table).to_csv(index=False).encode()])
def test_advice_finds_numbers_that_are_binary_or_a_category(form: Any) -> None:
    schema = Schema(*(integer(name, 0, 9) if name != "ill" else binary(name) for name in HOT))
    assert schema.check(form(HOT)).advice == (
        "work_a: contains only 0 and 1. If the codebook agrees, declare it as binary.",
        "work_b: contains only 0 and 1. If the codebook agrees, declare it as binary.",
        GROUP,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"work_a": [2, *HOT["work_a"][1:]]},
        {"work_a": [None, *HOT["work_a"][1:]]},
        {"work_a": [1, 1, *HOT["work_a"][2:]]},
    ],
    ids=["another number", "a missing cell", "two ones"],
)
def test_one_row_ends_the_advice_about_a_category(changes: dict[str, Any]) -> None:
    schema = Schema(*(integer(name, 0, 9) for name in HOT))
    assert not any("exactly one" in each for each in schema.check(HOT | changes).advice)


def test_few_rows_give_no_advice_about_types() -> None:
    schema = Schema(*(integer(name, 0, 9) for name in HOT))
    assert schema.check({name: cells[:19] for name, cells in HOT.items()}).advice == ()


def test_rows_of_another_width_than_the_header_are_counted() -> None:
    schema = Schema(integer("age", 0, 99), real("inc", 0, 9999), binary("sick"))
    check = schema.check(b"age,inc,sick\n" + b"30,1,000,1\n" * 50 + b"30,100,1\n" * 50)
    assert (check.null_rows, check.ragged_rows) == (50, 50)
    assert check.advice == (
        (
            "50 rows have more or fewer cells than the header. Put cells that contain a comma in quotation marks, as "
            'in "1,000", and remove commas at the ends of rows.'
        ),
    )
    assert check.advice[0] in str(TooManyNullRows(check, 0.01))


def test_rows_of_another_width_support_no_advice_about_types() -> None:
    schema = Schema(integer("work_a", 0, 99), integer("work_b", 0, 9))
    check = schema.check(b"work_a,work_b\n" + b"30,1,\n" * 50 + b"0,1\n")
    assert [each.partition(" more")[0] for each in check.advice] == ["50 rows have"]


def test_advice_names_cells_that_do_not_fit_and_quotes_none() -> None:
    schema = Schema(categorical("sex", ["f", "m"]), real("x", 0, 1), integer("n", 0, 9), binary("b"), real("far", 0, 1))
    table = {"sex": ["F", "", None], "x": ["a", 0.5, ""], "n": [1.5, 2, 3], "b": [2, 1, "yes"], "far": [7, 8, 0.5]}
    check = schema.check(table)
    assert check.advice == (
        "sex: 1 cell is not among the declared categories (f, m).",
        "x: 1 cell is no number such as 0.5.",
        "n: 1 cell is no whole number such as 7.",
        "b: 2 cells are neither 0 nor 1, true nor false.",
        "far: 2 cells are outside the declared bounds 0 to 1. Check the unit of measurement.",
    )
    assert str(check).endswith(check.advice[-1])
    assert check.advice[-1] in check._repr_html_()
    assert check.advice[0] in str(TooManyNullRows(check, 0.01))


def test_a_table_without_its_header_is_told_to_have_one() -> None:
    with pytest.raises(InvalidArgument, match="This line must be the header"):
        Schema(binary("a"), binary("b")).check(b"1,1\n0,1\n")


def test_a_wrongly_coded_table_has_null_rows_only() -> None:
    check = Schema(categorical("sex", ["Female", "Male"])).check(pd.DataFrame({"sex": ["F", "M", "F"]}))
    assert check.null_rows == check.rows == 3


TYPES = {int: (pa.int8(), pa.int64()), float: (pa.float32(), pa.float64()), bool: (pa.bool_(),)}
"""The Arrow types that hold a cell of a Python type."""


def _encode(values: pa.Array, kind: str) -> bytes:
    """A table with one column ``x``, as a file."""
    file, table = io.BytesIO(), pa.table({"x": values})
    if kind == "parquet":
        pq.write_table(table, file)
    else:
        with pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


def _read_codes(source: object, categories: tuple[str, ...]) -> Array:
    """The category indices of column ``x`` as the check reads them; NaN for missing cells."""
    matcher = Categories(categories)
    with open_rows(prepare(source)) as rows:
        return np.concatenate([matcher.codes(batch.columns[rows.names.index("x")]) for batch in rows.batches])


def _index(categories: tuple[str, ...], category: str | None) -> float:
    return np.nan if category is None else categories.index(category)


@pytest.mark.parametrize("kind", ["mapping", "frame", "csv", "parquet", "arrow"])
@pytest.mark.parametrize(("categories", "cell", "category"), cases.CELLS)
def test_text_matches_the_same_category_as_on_the_server(
    categories: tuple[str, ...], cell: str, category: str | None, kind: str
) -> None:
    frame = pd.DataFrame({"x": [cell], "other": ["1"]})
    sources: dict[str, Any] = {"mapping": {"x": [cell], "other": ["1"]}, "frame": frame}
    sources["csv"] = frame.to_csv(index=False).encode()
    source = sources[kind] if kind in sources else _encode(pa.array([cell]), kind)
    np.testing.assert_equal(_read_codes(source, categories), [_index(categories, category)])
    schema = Schema(categorical("x", list(categories)), *([] if kind in {"parquet", "arrow"} else [binary("other")]))
    assert schema.check(source).null_rows == (category is None)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(("categories", "cell", "category"), cases.NUMBERS)
def test_numbers_of_a_file_match_by_value_as_on_the_server(
    categories: tuple[str, ...], cell: Any, category: str | None, kind: str, keyed: bool
) -> None:
    for arrow_type in TYPES[type(cell)]:
        if arrow_type == pa.int8() and abs(cell) > 100:
            continue
        cells = pa.array([cell, None], arrow_type)
        source = _encode(cells.dictionary_encode() if keyed else cells, kind)
        np.testing.assert_equal(_read_codes(source, categories), [_index(categories, category), np.nan])
        assert Schema(categorical("x", list(categories))).check(source).null_rows == 1 + (category is None)


@pytest.mark.parametrize(("categories", "cell", "_"), cases.NUMBERS)
def test_numbers_in_memory_match_as_the_csv_that_is_sent(categories: tuple[str, ...], cell: Any, _: object) -> None:
    """The server sees the text of each cell: a table in memory is uploaded as CSV."""
    on_server = match_categories(categories, pa.array([format_cell(cell)], pa.string()))
    for source in ({"x": [cell], "other": [1]}, pd.DataFrame({"x": [cell], "other": [1]})):
        np.testing.assert_equal(_read_codes(source, categories), on_server)
