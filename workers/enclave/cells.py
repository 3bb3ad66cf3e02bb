"""Cells to values, by declared type: total, vectorised, and silent about what it met.

A value out of bounds is clamped. A missing cell (empty, NaN, infinite, unparsable, an unknown category, 3.5 in an
integer column) takes the declared impute value; without one its row becomes null, which is zeros throughout.
Spaces around a cell do not count, except where a category is declared with them. A cell is a category by its text or,
failing that, by its value: see :func:`match_categories`.
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
"""No two ways to match a cell, which RE2 tells in half the time."""

MOST_EXACT = 2.0**53
"""Whole numbers below are exact in double precision."""

SPACES = " \t\n\r\v\f"
STORED_TYPES: Mapping[str, type[np.generic]] = {
    "real": np.float64,
    "integer": np.float64,
    "binary": np.uint8,
    "categorical": np.uint16,
}
Float = NDArray[np.float64]


def parse_cells(columns: Sequence[Column], cells: Mapping[str, pa.Array], rows: int) -> dict[str, NDArray[Any]]:
    """The stored values of ``rows`` rows.

    Args:
        columns: the declared columns.
        cells: for each of them an array of ``rows`` cells: text (``pa.string()``, any bytes), whole numbers
            (``pa.int64()``, ``pa.uint64()``), numbers (``pa.float64()``) or nulls (``pa.null()``).
        rows: how many.

    Returns:
        name -> (rows,) array of the stored type, and ``present`` (uint8); all zero where a row is null.
    """
    present = np.ones(rows, dtype=bool)
    values: dict[str, NDArray[Any]] = {}
    for column in columns:
        parsed = _parse(column, cells[column.name])
        missing = np.isnan(parsed)
        if column.impute is None:
            present &= ~missing
        parsed[missing] = 0.0 if column.impute is None else _read_impute(column)
        values[column.name] = parsed.astype(STORED_TYPES[column.type])
    for array in values.values():
        array[~present] = 0
    return {**values, PRESENT: present.astype(np.uint8)}


def null_rows(columns: Sequence[Column], rows: int) -> dict[str, NDArray[Any]]:
    """``rows`` null rows in their stored types."""
    nothing: dict[str, NDArray[Any]] = {
        column.name: np.zeros(rows, dtype=STORED_TYPES[column.type]) for column in columns
    }
    return {**nothing, PRESENT: np.zeros(rows, dtype=np.uint8)}


def parse_units(unit: Column, cells: pa.Array) -> Float:
    """The unit that each cell names, NaN for none: cells of equal value name one unit, however they are spelt.

    A number outside the declared bounds names no unit: to clamp it would make one unit of strangers.
    """
    values = _values(unit, cells)
    if unit.lower is not None and unit.upper is not None:
        values[~((values >= unit.lower) & (values <= unit.upper))] = np.nan
    return values + 0.0  # -0 is 0


def _parse(column: Column, cells: pa.Array) -> Float:
    """Values within their declaration, NaN for missing cells."""
    values = _values(column, cells)
    return values if column.lower is None else np.clip(values, column.lower, column.upper)


def _values(column: Column, cells: pa.Array) -> Float:
    """Values of the declared type, wherever they lie, NaN for missing cells."""
    match column.type:
        case "categorical":
            return match_categories(column.categories, cells)
        case "binary":
            return _truths(cells)
        case "real" | "integer":
            values = _numbers(cells)
            values[~np.isfinite(values)] = np.nan
            if column.type == "integer":
                values[values != np.trunc(values)] = np.nan
            return values


def _truths(cells: pa.Array) -> Float:
    values = _numbers_and_truths(cells)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def _numbers_and_truths(cells: pa.Array) -> Float:
    """As :func:`_numbers`, where the words true and false are 1 and 0."""
    values = _numbers(cells)
    if pa.types.is_string(cells.type) and np.isnan(values).any():
        words = pc.index_in(pc.ascii_lower(pc.ascii_trim_whitespace(cells)), pa.array(["false", "true"]))
        values = np.where(np.isnan(values), _floats(words), values)
    return values


def match_categories(categories: Sequence[str], cells: pa.Array) -> Float:
    """The index of each cell's category ``(n,)``, NaN where it has none.

    A cell belongs to the category of the same text; else to the only one of the same value; else to none.

    - The text of a text cell is what it holds, with and then without spaces around it; that of a whole number its
      digits. Fractional numbers and truth values have no text.
    - The value of a text is the number that it spells (see ``NUMBER``), 1 for ``true`` and 0 for ``false`` in capitals
      or not, and none for all else. A number has its own value, and a truth value 1 or 0. Values that are not finite,
      or 2^53 and more on either side of zero, are none: there, different numbers may look alike.

    So ``1``, ``1.0`` and ``1e0`` are the category ``1``, unless ``1.0`` is a category as well: then each is itself, and
    ``1e0`` is none.
    """
    declared = pa.array(categories, type=pa.string())
    codes = _same_text(declared, cells)
    values = _values_of(declared)
    distinct, first, counts = np.unique(values[~np.isnan(values)], return_index=True, return_counts=True)
    if not len(distinct) or not np.isnan(codes).any():
        return codes
    owners = np.where(counts == 1, np.flatnonzero(~np.isnan(values))[first], np.nan)
    wanted = _values_of(cells)
    places = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
    by_value = np.where(distinct[places] == wanted, owners[places], np.nan)
    return np.where(np.isnan(codes), by_value, codes)


def _same_text(declared: pa.Array, cells: pa.Array) -> Float:
    if pa.types.is_floating(cells.type):
        return np.full(len(cells), np.nan)
    text = cells if pa.types.is_string(cells.type) else cells.cast(pa.string())
    codes = pc.index_in(pc.ascii_trim_whitespace(text), declared)
    if any(category != category.strip(SPACES) for category in declared.to_pylist()):
        codes = pc.coalesce(pc.index_in(text, declared), codes)
    return _floats(codes)


def _values_of(cells: pa.Array) -> Float:
    """The value of each cell as :func:`match_categories` has it, NaN for none."""
    values = _numbers_and_truths(cells)
    values[~(np.abs(values) < MOST_EXACT)] = np.nan
    return values


def _numbers(cells: pa.Array) -> Float:
    """Every cell as a number; where it is none, NaN, or whatever infinity it spells.

    The grammar of ``NUMBER`` is what casting accepts, less the words for NaN and infinity. Casting a text that it does
    not accept is an error of the whole array, so arrays with such a cell are matched against the grammar first: the
    same values at half the speed.
    """
    if not pa.types.is_string(cells.type):
        return _floats(cells)
    trimmed = pc.ascii_trim_whitespace(cells)
    try:
        return _floats(_keep(trimmed, pc.not_equal(pc.binary_length(trimmed), 0)))
    except pa.ArrowInvalid:
        return _floats(_keep(trimmed, pc.match_substring_regex(trimmed, NUMBER)))


def _keep(cells: pa.Array, which: pa.Array) -> pa.Array:
    return pc.if_else(which, cells, pa.scalar(None, pa.string()))


def _floats(values: pa.Array) -> Float:
    """A fresh, writable array with NaN for nulls."""
    numbers = values.cast(pa.float64(), safe=False)
    return np.array(numbers.fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)


def _read_impute(column: Column) -> float:
    if column.type == "categorical":
        return float(column.categories.index(str(column.impute)))
    assert column.impute is not None
    return float(column.impute)
