"""Cells of a table as the server reads them: text to values of the declared type.

A cell that is empty, that does not fit its type or that names no declared category is missing, which is NaN here.
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
"""The cells of one column: texts, or numbers with NaN for missing ones."""

SPACES: Final = " \t\n\r\v\f"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ONLY_IN_PYTHON = re.compile(r"[^\x20-\x7e\t\n\r\v\f]|_")  # ``float`` takes these in a number, the server does not
_TRUTHS = {"false": 0.0, "true": 1.0}
_MOST_REMEMBERED = 100_000


def text_of(cell: object) -> str:
    """One cell as CSV holds it; empty for None, NaN, NaT and the NA of pandas."""
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


def cells_of(values: NDArray[Any]) -> Cells:
    """An array ``(n,)`` as cells: numbers stay numbers, everything else becomes text."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    scalars = list(values) if values.dtype.kind in "mM" else values.tolist()  # a list would make integers of times
    return [text_of(cell) for cell in scalars]


def values_of(column: "Column", cells: Cells) -> Array:
    """Values ``(n,)`` of the declared type, before they are clamped; the index of a category; NaN where missing."""
    if column.categories is not None:
        return Categories(column.categories).codes(cells)
    if column.type == "binary":
        return truths(cells)
    values = numbers(cells)
    if column.type == "integer":
        values[values != np.trunc(values)] = np.nan
    return values


def numbers(cells: Cells) -> Array:
    """Finite numbers ``(n,)``; NaN for every other cell."""
    values = np.array(cells) if isinstance(cells, np.ndarray) else _parse(cells)
    values[~np.isfinite(values)] = np.nan
    return values


def truths(cells: Cells) -> Array:
    """0 and 1 ``(n,)``, also for the words ``false`` and ``true``; NaN for every other cell."""
    values = numbers(cells)
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
            pass  # a cell is no number: find out which
    return np.array([_number(cell) for cell in cells])


def _number(cell: str) -> float:
    trimmed = cell.strip(SPACES)
    return float(trimmed) if _NUMBER.fullmatch(trimmed) else math.nan


def numeric_value(text: str) -> float | None:
    """The finite number that ``text`` spells, spaces around it aside; None where it spells none."""
    value = _number(text)
    return value if math.isfinite(value) else None


class Categories:
    """The declared categories of one column.

    A cell is a category when it is the same text, then when it is so without the spaces around it, then when both
    are the same finite number: ``1``, ``1.0`` and ``01`` are the category ``"1"``.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        self._by_text = {category: index for index, category in enumerate(categories)}
        self._by_number: dict[float, int] = {}
        for index, category in enumerate(categories):
            value = numeric_value(category)
            if value is not None:
                self._by_number.setdefault(value, index)
        self._known: dict[str, float] = {}

    def codes(self, cells: Cells) -> Array:
        """The index of each cell's category, ``(n,)``; NaN where it has none."""
        if isinstance(cells, np.ndarray):
            cells = [text_of(cell) for cell in cells.tolist()]
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        known = self._known
        for text in set(cells) - known.keys():
            known[text] = self._code(text)
        return np.array([known[text] for text in cells], dtype=np.float64)

    def _code(self, text: str) -> float:
        for form in (text, text.strip(SPACES)):
            if form in self._by_text:
                return float(self._by_text[form])
        value = numeric_value(text)
        return math.nan if value is None else float(self._by_number.get(value, math.nan))
