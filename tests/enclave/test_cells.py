"""The conversion of cells is total, and equals an independent slow parser."""

import re
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.facts import Column
from support.vault import AGE, COLUMNS, HOURS, ILL, NAMES, RACE, RICH, SEX, parse_row, to_lists
from workers.enclave.cells import NUMBER, _convert_numbers, make_null_rows, parse_cells

digits = st.text("0123456789", min_size=1, max_size=400)
odd_numbers = st.sampled_from(
    [
        "", "-", "+", ".", "e5", "1e", "+-1", "1_000", "0x10", "١", "1e400", "-1e400", "1e-400", "1e9999999999999999",
        "nan", "NaN", "inf", "-Infinity", "3.5", "38.0", "0", "1", "1.0", "-0.0", "-0", "00", "5.", ".5", "1,5", "2e0",
    ]
)  # fmt: skip
numbers = st.one_of(
    odd_numbers,
    st.floats().map(repr),
    st.integers().map(str),
    st.builds("{}.{}e{}".format, digits, digits, st.integers(-500, 500)),
)
words = st.sampled_from(
    ["true", "FALSE", "True", "yes", "Female", "male", "Male", " odd", "odd", "ünï", "A", "B", "\0"]
)
SPACES = " \t\n\v\f\r"
spaces = st.text(SPACES, max_size=2)
cells = st.one_of(
    st.builds("{}{}{}".format, spaces, st.one_of(numbers, words), spaces),
    st.text(st.characters(exclude_categories=["Cs"])),
)
tables = st.lists(st.lists(cells, min_size=len(COLUMNS), max_size=len(COLUMNS)), min_size=1, max_size=8)


def parse_text(rows: list[list[str]]) -> dict[str, list[float]]:
    arrays = {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(NAMES)}
    return to_lists(parse_cells(COLUMNS, arrays, len(rows)))


def expected(rows: list[list[str]]) -> dict[str, list[float]]:
    slow = [parse_row(COLUMNS, list(NAMES), row) for row in rows]
    return {name: [row[place] for row in slow] for place, name in enumerate([*NAMES, "_present"])}


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(tables)
def test_w14_any_cell_has_a_value_or_makes_its_row_null(rows: list[list[str]]) -> None:
    """W14: no cell raises, and null rows have zeros only; compared with the slow parser."""
    assert parse_text(rows) == expected(rows)


def read(*column: str) -> list[float | None]:
    """Convert the cells of one column to finite numbers, None for other cells."""
    return [value if np.isfinite(value) else None for value in _convert_numbers(pa.array(column, pa.string())).tolist()]


def match_grammar(cell: str) -> float | None:
    """Convert a cell to a number by the grammar alone."""
    value = float(cell) if re.fullmatch(NUMBER, cell.strip(SPACES)) else np.nan
    return value if np.isfinite(value) else None


@pytest.mark.long
@pytest.mark.parametrize(("alphabet", "longest"), [("05.+-eE", 5), ("1.+exXpPfFdDlLnNaAiIt_, '#\0٣½", 3)])
def test_short_cells_are_numbers_by_the_grammar(alphabet: str, longest: int) -> None:
    """Every short text is converted alone and among others.

    Casting also accepts words for NaN and infinity, which are not numbers either.
    """
    lengths = range(longest + 1)
    every = ["".join(letters) for length in lengths for letters in product(alphabet, repeat=length)]
    numbers = [match_grammar(cell) for cell in every]
    for cell, number in zip(every, numbers, strict=True):
        assert read(cell) == [number], cell
    assert read(*every, "none") == [*numbers, None]


@settings(max_examples=500, deadline=None)
@given(cells)
def test_long_cells_are_numbers_by_the_grammar(cell: str) -> None:
    assert read(cell) == [match_grammar(cell)]


@settings(max_examples=200, deadline=None)
@given(st.lists(cells, min_size=1, max_size=8))
def test_w14_value_of_a_cell_does_not_depend_on_other_cells(column: list[str]) -> None:
    """W14: a cell that is not a number changes the method of conversion, but not the values of other cells."""
    assert read(*column) == [read(cell)[0] for cell in column]


GOOD = ["40", "20", "Male", "A", "1", "0"]


@pytest.mark.parametrize(
    ("name", "cell", "stored"),
    [
        ("age", "16", 17), ("age", "91", 90), ("age", "1e300", 90), ("age", "40.5", 38), ("age", "", 38),
        ("age", "x", 38),
        ("age", "40.0", 40), ("age", "nan", 38), ("age", "-inf", 38), ("hours", "-5", 1.5), ("hours", "1e5", 99),
        ("sex", "Female", 0), ("sex", " odd", 2), ("sex", "Male ", 1), ("race", "", 1), ("race", "C", 1),
        ("rich", "TRUE", 1), ("rich", "false", 0), ("rich", "1.0", 1), ("ill", "2", 1), ("ill", "", 1),
    ],
)  # fmt: skip
def test_cell_is_clamped_or_imputed(name: str, cell: str, stored: float) -> None:
    row = list(GOOD)
    row[NAMES.index(name)] = cell
    result = parse_text([row])
    assert result["_present"] == [1]
    assert result[name] == [stored]


@pytest.mark.parametrize(
    ("name", "cell"),
    [("hours", ""), ("hours", "NaN"), ("hours", "inf"), ("hours", "1e400"), ("hours", "a"), ("sex", "male"),
     ("sex", ""), ("rich", "2"), ("rich", ""), ("rich", "yes"), ("hours", "1\0")],
)  # fmt: skip
def test_missing_cell_without_an_impute_value_makes_a_null_row(name: str, cell: str) -> None:
    row = list(GOOD)
    row[NAMES.index(name)] = cell
    result = parse_text([GOOD, row, GOOD])
    assert result["_present"] == [1, 0, 1]
    assert [values[1] for values in result.values()] == [0.0] * 7


@pytest.mark.parametrize(
    ("column", "cells", "stored", "present"),
    [
        (HOURS, pa.array([2.5, None, np.nan, np.inf, 1e9, -1.0]), [2.5, 0, 0, 0, 99, 1.5], [1, 0, 0, 0, 1, 1]),
        (AGE, pa.array([2**62, -(2**62), None], pa.int64()), [90, 17, 38], [1, 1, 1]),
        (AGE, pa.array([2**64 - 1], pa.uint64()), [90], [1]),
        (RICH, pa.array([0.0, 1.0, 0.5, None]), [0, 1, 0, 0], [1, 1, 0, 0]),
        (ILL, pa.nulls(2), [1, 1], [1, 1]),
        (SEX, pa.nulls(2), [0, 0], [0, 0]),
        (Column("z", "categorical", categories=("1", "2")), pa.array([2, 3, None, 1]), [1, 0, 0, 0], [1, 0, 0, 1]),
        (RACE, pa.array(["A", None]), [0, 1], [1, 1]),
    ],
)  # fmt: skip
def test_typed_cells_are_converted(column: Column, cells: Any, stored: list[float], present: list[int]) -> None:
    result = parse_cells([column], {column.name: cells}, len(cells))
    assert result[column.name].tolist() == stored
    assert result["_present"].tolist() == present


def test_stored_types_are_fixed() -> None:
    arrays = {name: pa.array([cell]) for name, cell in zip(NAMES, GOOD, strict=True)}
    types = {name: values.dtype.name for name, values in parse_cells(COLUMNS, arrays, 1).items()}
    assert types == {name: values.dtype.name for name, values in make_null_rows(COLUMNS, 1).items()}
    assert types == {
        "age": "float64", "hours": "float64", "sex": "uint16", "race": "uint16",
        "rich": "uint8", "ill": "uint8", "_present": "uint8",
    }  # fmt: skip


@pytest.mark.parametrize("others", [("1", "3"), ("99", "98", "97"), ("",), ("-40", "x")])
@pytest.mark.parametrize("kind", ["integer", "real", "binary", "categorical"])
def test_missing_cell_takes_the_declared_impute_value(kind: Any, others: tuple[str, ...]) -> None:
    """W6: the other cells of its batch have no effect."""
    lower, upper = (0.0, 100.0) if kind in {"integer", "real"} else (None, None)
    impute, categories = {"categorical": ("3", ("1", "99", "3"))}.get(kind, (True if kind == "binary" else 42.0, ()))
    column = Column("x", kind, lower, upper, categories, impute)
    array = pa.array(["", *others, "no such"], pa.string())
    values = parse_cells([column], {"x": array}, len(array))
    stored = {"categorical": 2, "binary": 1}.get(kind, 42)
    assert (values["x"][0], values["x"][-1]) == (stored, stored)
    assert values["_present"].all()
    for place, cell in enumerate(array.to_pylist()):
        assert parse_cells([column], {"x": pa.array([cell])}, 1)["x"][0] == values["x"][place]
