"""Declared facts: what planning may know of a table, public by declaration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. Bounds and categories are the owner's word, never inferred."""

    name: str
    type: Literal["integer", "real", "categorical", "binary"]
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    impute: float | str | bool | None = None

    @property
    def discrete(self) -> bool:
        """Whether values are labels, not numbers."""
        return self.type in {"binary", "categorical"}

    @property
    def constant(self) -> bool:
        """Whether its bounds coincide: whatever a row holds, its coordinate is 0."""
        return self.lower is not None and self.lower == self.upper


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """All that planning may know of a table: public by declaration."""

    columns: tuple[Column, ...]
    slots: int
    unit: Mapping[str, Any]  # {"kind": "row"} or {"kind": "column", ...}
    sensitivity: Literal["private", "public"]
    delta: float | None = None

    @property
    def rows_per_unit(self) -> int:
        """Rows that one privacy unit can contribute."""
        return int(self.unit["max_rows"]) if self.unit["kind"] == "column" else 1
