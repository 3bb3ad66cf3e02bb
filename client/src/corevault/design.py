"""From the declared table's columns to the design's: the mapping that a release publishes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corevault._arguments import what_came
from corevault.replies._decode import Reply

Array = NDArray[np.float64]


class Table(Protocol):
    """Anything with columns by name: a pandas DataFrame, or a mapping of name to a one-dimensional array."""

    def __getitem__(self, name: str, /) -> ArrayLike:
        """The column, shape (n,)."""


@dataclass(frozen=True, kw_only=True)
class DesignColumn(Reply):
    """One design column: its ``source`` among the declared columns (None: none) and its ``transform``."""

    name: str
    transform: Mapping[str, Any]
    source: str | None = None

    def apply(self, table: Table, rows: int) -> Array:
        """The design column, shape ``(rows,)``. Raises ``ValueError`` for missing values or an unknown kind."""
        kind = self.transform.get("kind")
        if kind == "constant":
            return np.full(rows, float(self.transform["value"]))
        if self.source is None or kind not in ("affine", "indicator"):
            raise ValueError(f"This version cannot compute the design column {self.name!r}.")
        values = _cells(table, self.source)
        if kind == "indicator":
            return self._indicator(values)
        return self._affine(values)

    def _affine(self, values: NDArray[Any]) -> Array:
        numbers = values.astype(np.float64)
        if np.isnan(numbers).any():
            raise ValueError(f"Column {self.source!r} has missing values; impute them or drop their rows first.")
        scaled = (numbers - float(self.transform["center"])) / float(self.transform["scale"])
        return np.clip(scaled, -1.0, 1.0)  # the vault clamps to the declared bounds, which map to -1 and 1

    def _indicator(self, values: NDArray[Any]) -> Array:
        labels = values.tolist()
        if any(label is None or (isinstance(label, float) and math.isnan(label)) for label in labels):
            raise ValueError(f"Column {self.source!r} has missing values; impute them or drop their rows first.")
        return np.fromiter((str(label) == str(self.transform["value"]) for label in labels), np.float64, len(labels))


def design_matrix(design: Sequence[DesignColumn], table: Table) -> Array:
    """The design matrix of new rows, shape ``(n, p)``, columns in the design's order, intercept included.

    Values out of the declared bounds are clamped, as the vault does. The design does not name the
    reference category, so a category that was never declared counts as the reference.

    Raises ``ValueError`` for missing values, ``KeyError`` for a column that the table lacks, ``TypeError`` for what is
    no table.
    """
    sources = [column.source for column in design if column.source is not None]
    if not sources:
        raise ValueError("The design has no column that comes from the table, so its rows cannot be counted.")
    rows = len(_cells(table, sources[0]))
    return np.column_stack([column.apply(table, rows) for column in design])


def _cells(table: Table, name: str) -> NDArray[Any]:
    try:
        return np.asarray(table[name])
    except KeyError:
        raise KeyError(f"The table has no column {name!r}, from which the design is computed.") from None
    except (TypeError, IndexError):
        raise TypeError(f"Give a DataFrame or a mapping of names to columns; {what_came(table)}.") from None
