"""Conversion of table cells to values, by the rules of the server.

A cell is missing if it is empty, does not fit its type, or matches no declared category. Missing cells are NaN.
"""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from corevault.schema import Column

Array = NDArray[np.float64]
Cells = Sequence[str] | Array
"""The cells of one column: texts, or numbers with NaN for missing cells."""

SPACES: Final = " \t\n\r\v\f"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ONLY_IN_PYTHON = re.compile(r"[^\x20-\x7e\t\n\r\v\f]|_")  # ``float`` accepts these in a number, the server does not
_TRUTHS = {"false": 0.0, "true": 1.0}
_MOST_EXACT = 2.0**53
_MOST_CACHED = 100_000


def format_cell(cell: object) -> str:
    """The text of a cell as a CSV file contains it; a missing cell is an empty text."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    return "" if is_missing(cell) else str(cell)


def is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, NaT or the NA of pandas."""
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(cell, float | np.floating | np.datetime64 | np.timedelta64) and bool(cell != cell)  # noqa: PLR0124


def make_cells(values: NDArray[Any], *, as_text: bool) -> Cells:
    """An array ``(n,)`` as cells. Numbers stay numbers unless ``as_text``; all other values become text."""
    if values.dtype.kind in "iuf" and not as_text:
        return values.astype(np.float64)
    scalars = list(values) if values.dtype.kind in "mM" else values.tolist()  # ``tolist`` turns times into integers
    return [format_cell(cell) for cell in scalars]


def parse_values(column: "Column", cells: Cells) -> Array:
    """Values ``(n,)`` of the declared type, not clamped. A category is its index, a missing cell NaN."""
    if column.categories is not None:
        return Categories(column.categories).codes(cells)
    if column.type == "binary":
        return parse_truths(cells)
    values = parse_numbers(cells)
    if column.type == "integer":
        values[values != np.trunc(values)] = np.nan
    return values


def parse_numbers(cells: Cells) -> Array:
    """Finite numbers ``(n,)``; NaN for every other cell."""
    values = np.array(cells) if isinstance(cells, np.ndarray) else _parse(cells)
    values[~np.isfinite(values)] = np.nan
    return values


def parse_truths(cells: Cells) -> Array:
    """Truth values ``(n,)`` as 0 and 1, from numbers or from true and false; NaN for every other cell."""
    values = parse_numbers(cells)
    if not isinstance(cells, np.ndarray):
        for place in np.flatnonzero(np.isnan(values)).tolist():
            values[place] = _TRUTHS.get(cells[place].strip(SPACES).lower(), math.nan)
    values[(values != 0) & (values != 1)] = np.nan
    return values


def _parse(cells: Sequence[str]) -> Array:
    if not _ONLY_IN_PYTHON.search(" ".join(cells)):
        try:
            return np.array([float(cell or "nan") for cell in cells] if "" in cells else list(map(float, cells)))
        except ValueError:
            pass  # at least one cell is not a plain number, so parse the cells one by one
    return np.array([_number(cell) for cell in cells])


def _number(cell: str) -> float:
    trimmed = cell.strip(SPACES)
    return float(trimmed) if _NUMBER.fullmatch(trimmed) else math.nan


def find_category_value(text: str) -> float | None:
    """The value by which a text can match a category; None if it has none.

    The value of a number is the number itself. The value of ``true`` is 1, and that of ``false`` is 0. A number of 2^53
    or more has no value, because doubles do not distinguish neighbouring integers there.
    """
    value = _number(text)
    if math.isnan(value):
        value = _TRUTHS.get(text.strip(SPACES).lower(), math.nan)
    return value if abs(value) < _MOST_EXACT else None


class Categories:
    """The declared categories of one column.

    Three rules are tried in order. First, a text matches the category with exactly this text. Second, it matches after
    the spaces around it are removed. Third, it matches a category of the same value (see ``find_category_value``), if
    there is only one: ``1``, ``1.0`` and ``True`` all match the category ``"1"``. A number in an array has no text, so
    only the third rule applies.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        self._by_text = {category: float(index) for index, category in enumerate(categories)}
        values = [find_category_value(category) for category in categories]
        self._by_value = {
            value: float(index) for index, value in enumerate(values) if value is not None and values.count(value) == 1
        }
        self._cache: dict[str, float] = {}

    def codes(self, cells: Cells) -> Array:
        """The index of each cell's category, ``(n,)``; NaN for a cell without one."""
        if isinstance(cells, np.ndarray):
            return np.array([self._by_value.get(value, math.nan) for value in cells.tolist()])
        if len(self._cache) > _MOST_CACHED:
            self._cache.clear()
        cache = self._cache
        for text in set(cells) - cache.keys():
            cache[text] = self._code(text)
        return np.array([cache[text] for text in cells], dtype=np.float64)

    def _code(self, text: str) -> float:
        for form in (text, text.strip(SPACES)):
            if form in self._by_text:
                return self._by_text[form]
        value = find_category_value(text)
        return math.nan if value is None else self._by_value.get(value, math.nan)
