"""What the server would make of a table's cells, counted on the owner's own machine before an upload."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from corevault._arguments import what_came

if TYPE_CHECKING:
    from corevault.schema import Column

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SPACES = " \t\n\r\v\f"


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """``missing`` cells are imputed, or make their row null; ``clamped`` ones are moved to a bound."""

    missing: int
    clamped: int


@dataclass(frozen=True, slots=True)
class TableCheck:
    """Counts that stay with the owner. ``absent`` and ``unknown`` columns would have the whole file rejected."""

    rows: int
    null_rows: int
    columns: dict[str, ColumnCheck]
    absent: tuple[str, ...]
    unknown: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.null_rows} of {self.rows} rows would be null."]
        lines += [f"{name}: no such column in the table" for name in self.absent]
        lines += [f"{name}: not declared" for name in self.unknown]
        for name, found in self.columns.items():
            if found.missing or found.clamped:
                lines.append(f"{name}: {found.missing} missing, {found.clamped} clamped")
        return "\n".join(lines)


def check_table(columns: "Sequence[Column]", frame: pd.DataFrame) -> TableCheck:
    """The counts for ``frame`` as it would be uploaded, as CSV."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"Give a DataFrame, as pandas.read_csv makes one of a file; {what_came(frame)}.")
    declared, present = [column.name for column in columns], [str(name) for name in frame.columns]
    if len(set(present)) < len(present):
        raise ValueError("A column name appears twice in the table; name each column once.")
    null = np.zeros(len(frame), dtype=bool)
    checks: dict[str, ColumnCheck] = {}
    for column in columns:
        if column.name in present:
            missing, clamped = _judged(column, frame[column.name])
            checks[column.name] = ColumnCheck(int(missing.sum()), int(clamped.sum()))
            if column.impute is None:
                null |= missing
    return TableCheck(
        rows=len(frame),
        null_rows=int(null.sum()),
        columns=checks,
        absent=tuple(name for name in declared if name not in present),
        unknown=tuple(name for name in present if name not in declared),
    )


def _judged(column: "Column", cells: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which cells are missing, and which are clamped."""
    text = cells.map(str).where(cells.notna(), "")
    trimmed = text.str.strip(_SPACES)
    if column.categories is not None:
        known = text.isin(column.categories) | trimmed.isin(column.categories)
        return ~known.to_numpy(dtype=bool), np.zeros(len(cells), dtype=bool)
    values = pd.to_numeric(trimmed.where(trimmed.str.fullmatch(_NUMBER)), errors="coerce").to_numpy(dtype=np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    if column.type == "binary":
        words = trimmed.str.lower().isin(["true", "false"]).to_numpy(dtype=bool)
        return ~(words | (values == 0) | (values == 1)), np.zeros(len(cells), dtype=bool)
    if column.type == "integer":
        values = np.where(values == np.trunc(values), values, np.nan)
    missing = np.isnan(values)
    return missing, ~missing & ((values < column.lower) | (values > column.upper))
