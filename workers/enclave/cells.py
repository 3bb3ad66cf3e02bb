"""Converts cells to values of their declared types.

The conversion is total, vectorised, and reports nothing about cells. A value out of bounds is clamped. A missing cell
(empty, NaN, infinite, unparsable, an unknown category, 3.5 in an integer column) takes the declared impute value.
Without one its row becomes a null row, which has zeros only. Spaces around a cell are ignored, unless a category is
declared with them. A cell matches a category by its text, or else by its value: see :func:`match_categories`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.row_source import PRESENT

NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""Unambiguous: there is one way to match a cell, so that RE2 takes half the time."""

MOST_EXACT = 2.0**53
"""Smaller whole numbers are exact in double precision."""

SPACES = " \t\n\r\v\f"
STORED_TYPES: Mapping[str, type[np.generic]] = {
    "real": np.float64,
    "integer": np.float64,
    "binary": np.uint8,
    "categorical": np.uint16,
}
Float = NDArray[np.float64]


def parse_cells(columns: Sequence[Column], cells: Mapping[str, pa.Array], rows: int) -> dict[str, NDArray[Any]]:
    """Convert the cells of ``rows`` rows to stored values.

    Args:
        columns: the declared columns.
        cells: for each column, an array of ``rows`` cells: text (``pa.string()``, any bytes), whole numbers
            (``pa.int64()``, ``pa.uint64()``), numbers (``pa.float64()``) or nulls (``pa.null()``).
        rows: the number of rows.

    Returns:
        name -> (rows,) array of the stored type, and ``present`` (uint8); all zero where a row is null.
    """
    present = np.ones(rows, dtype=bool)
    values: dict[str, NDArray[Any]] = {}
    for column in columns:
        parsed = _convert_clamped(column, cells[column.name])
        missing = np.isnan(parsed)
        if column.impute is None:
            present &= ~missing
        parsed[missing] = 0.0 if column.impute is None else _read_impute(column)
        values[column.name] = parsed.astype(STORED_TYPES[column.type])
    for array in values.values():
        array[~present] = 0
    return {**values, PRESENT: present.astype(np.uint8)}


def make_null_rows(columns: Sequence[Column], rows: int) -> dict[str, NDArray[Any]]:
    """Make ``rows`` null rows of the stored types."""
    zeros: dict[str, NDArray[Any]] = {
        column.name: np.zeros(rows, dtype=STORED_TYPES[column.type]) for column in columns
    }
    return {**zeros, PRESENT: np.zeros(rows, dtype=np.uint8)}


def parse_units(unit: Column, cells: pa.Array) -> Float:
    """Convert cells of the unit's column to numbers that identify units, NaN for none.

    Cells of equal value name the same unit in every spelling. A number outside the declared bounds names no unit,
    because clamping would merge different people into one unit.
    """
    values = _convert(unit, cells)
    if unit.lower is not None and unit.upper is not None:
        values[~((values >= unit.lower) & (values <= unit.upper))] = np.nan
    return values + 0.0  # -0 is 0


def _convert_clamped(column: Column, cells: pa.Array) -> Float:
    """Convert to values clamped to the declared bounds, NaN for missing cells."""
    values = _convert(column, cells)
    return values if column.lower is None else np.clip(values, column.lower, column.upper)


def _convert(column: Column, cells: pa.Array) -> Float:
    """Convert to values of the declared type without clamping, NaN for missing cells."""
    match column.type:
        case "categorical":
            return match_categories(column.categories, cells)
        case "binary":
            return _convert_truths(cells)
        case "real" | "integer":
            values = _convert_numbers(cells)
            values[~np.isfinite(values)] = np.nan
            if column.type == "integer":
                values[values != np.trunc(values)] = np.nan
            return values


def _convert_truths(cells: pa.Array) -> Float:
    values = _convert_numbers_and_truths(cells)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def _convert_numbers_and_truths(cells: pa.Array) -> Float:
    """As :func:`_convert_numbers`, with 1 and 0 for the words true and false."""
    values = _convert_numbers(cells)
    if pa.types.is_string(cells.type) and np.isnan(values).any():
        words = pc.index_in(pc.ascii_lower(pc.ascii_trim_whitespace(cells)), pa.array(["false", "true"]))
        values = np.where(np.isnan(values), _to_floats(words), values)
    return values


def match_categories(categories: Sequence[str], cells: pa.Array) -> Float:
    """Find the index of each cell's category ``(n,)``, NaN for no category.

    A cell belongs to the category of the same text, or else to the only category of the same value, or else to none.

    - A text cell is compared as it is, and then without spaces around it. A whole number is compared as its digits.
      Fractional numbers and truth values have no text.
    - The value of a text is the number that it spells (see ``NUMBER``). It is 1 for ``true`` and 0 for ``false``, in
      upper or lower case. Other texts have no value. The value of a truth value is 1 or 0. A number has no value if it
      is not finite, or at least 2^53 in magnitude, because different numbers may be equal there.

    So ``1``, ``1.0`` and ``1e0`` are the category ``1``. If ``1.0`` is a category as well, then ``1`` and ``1.0`` are
    their categories by text, and ``1e0`` has none.
    """
    declared = pa.array(categories, type=pa.string())
    codes = _match_text(declared, cells)
    values = _compared_values(declared)
    distinct, first, counts = np.unique(values[~np.isnan(values)], return_index=True, return_counts=True)
    if not len(distinct) or not np.isnan(codes).any():
        return codes
    owners = np.where(counts == 1, np.flatnonzero(~np.isnan(values))[first], np.nan)
    wanted = _compared_values(cells)
    places = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    by_value = np.where(distinct[places] == wanted, owners[places], np.nan)
    return np.where(np.isnan(codes), by_value, codes)


def _match_text(declared: pa.Array, cells: pa.Array) -> Float:
    if pa.types.is_floating(cells.type):
        return np.full(len(cells), np.nan)
    text = cells if pa.types.is_string(cells.type) else cells.cast(pa.string())
    codes = pc.index_in(pc.ascii_trim_whitespace(text), declared)
    if any(category != category.strip(SPACES) for category in declared.to_pylist()):
        codes = pc.coalesce(pc.index_in(text, declared), codes)
    return _to_floats(codes)


def _compared_values(cells: pa.Array) -> Float:
    """Convert cells to the values that :func:`match_categories` compares, NaN for none."""
    values = _convert_numbers_and_truths(cells)
    values[~(np.abs(values) < MOST_EXACT)] = np.nan
    return values


def _convert_numbers(cells: pa.Array) -> Float:
    """Convert every cell to a number; NaN for other cells, and an infinity where a cell spells one.

    ``NUMBER`` is the grammar that casting accepts, without the words for NaN and infinity. Casting fails for the whole
    array if it does not accept one cell. Such an array is first matched against the grammar, which gives the same
    values at half the speed.
    """
    if not pa.types.is_string(cells.type):
        return _to_floats(cells)
    trimmed = pc.ascii_trim_whitespace(cells)
    try:
        return _to_floats(_keep_where(trimmed, pc.not_equal(pc.binary_length(trimmed), 0)))
    except pa.ArrowInvalid:
        return _to_floats(_keep_where(trimmed, pc.match_substring_regex(trimmed, NUMBER)))


def _keep_where(cells: pa.Array, which: pa.Array) -> pa.Array:
    return pc.if_else(which, cells, pa.scalar(None, pa.string()))


def _to_floats(values: pa.Array) -> Float:
    """Copy to a new, writable array with NaN for nulls."""
    numbers = values.cast(pa.float64(), safe=False)
    return np.array(numbers.fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def _read_impute(column: Column) -> float:
    if column.type == "categorical":
        return float(column.categories.index(str(column.impute)))
    assert column.impute is not None
    return float(column.impute)
