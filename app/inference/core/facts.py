"""Declared facts: the public description of a table, which is all that planning reads."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

_MOST_NAMES: Final = 20
"""Largest number of names in a message."""
_LONGEST_LIST: Final = 400
"""Largest number of characters of names in a message; the first name is always stated."""


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


def suggest_columns(given: str | None, names: Iterable[str], kind: str = "declared column") -> str:
    """Make the message that names the columns to choose from; names like ``given`` come first if not all fit."""
    offered = list(names)
    if not offered:
        return f"This dataset has no {kind}; choose another model."
    shown, size = list[str](), 0
    if len(offered) > _MOST_NAMES or sum(map(len, offered)) > _LONGEST_LIST:
        near = difflib.get_close_matches(given or "", offered, n=3)
        offered = list(dict.fromkeys([*near, *offered]))
    for name in offered[:_MOST_NAMES]:
        size += len(name)
        if shown and size > _LONGEST_LIST:
            break
        shown.append(name)
    rest = len(offered) - len(shown)
    return f"Name a {kind}: {', '.join(shown)}{f', and {rest} more' if rest else ''}."
