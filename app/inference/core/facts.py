"""Declared facts: the public description of a table, which is all that planning reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column; the owner states its bounds and categories, they are never inferred.

    ``lower`` and ``upper`` are inclusive. ``impute`` replaces missing values; None: they make the row null.
    """

    name: str
    type: Literal["integer", "real", "categorical", "binary"]
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    impute: float | str | bool | None = None

    @property
    def is_discrete(self) -> bool:
        """Whether values are labels, not numbers."""
        return self.type in {"binary", "categorical"}

    @property
    def is_constant(self) -> bool:
        """Whether its bounds coincide; its coordinate is then 0 in every row."""
        return self.lower is not None and self.lower == self.upper


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """The declared facts of a table; ``slots`` is the number of privacy units with null rows included."""

    columns: tuple[Column, ...]
    slots: int
    unit: Mapping[str, Any]  # {"kind": "row"} or {"kind": "column", ...}
    sensitivity: Literal["private", "public"]
    delta: float | None = None

    @property
    def rows_per_unit(self) -> int:
        """The number of rows that one privacy unit can contribute."""
        return int(self.unit["max_rows"]) if self.unit["kind"] == "column" else 1
