"""Declared columns, pleasant to write.

Bounds and categories are the owner's word and public: take them from a codebook or from what the
question allows, never from the rows, since what they say about the rows is not accounted for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corevault._arguments import what_came

if TYPE_CHECKING:
    import pandas as pd

    from corevault._check import TableCheck


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. ``impute`` None: a missing value makes its row a null row, which counts for nothing."""

    name: str
    type: str
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] | None = None
    impute: float | str | bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The column as the HTTP contract has it."""
        body: dict[str, Any] = {"name": self.name, "type": self.type}
        if self.lower is not None:
            body |= {"lower": self.lower, "upper": self.upper}
        if self.categories is not None:
            body["categories"] = list(self.categories)
        if self.impute is not None:
            body["missing"] = {"impute": self.impute}
        return body


def real(name: str, lower: float, upper: float, *, impute: float | None = None) -> Column:
    """A real number in ``[lower, upper]``; values outside are clamped."""
    return Column(name, "real", lower, upper, impute=impute)


def integer(name: str, lower: int, upper: int, *, impute: int | None = None) -> Column:
    """A whole number in ``[lower, upper]``; values outside are clamped."""
    return Column(name, "integer", lower, upper, impute=impute)


def categorical(name: str, categories: Sequence[str], *, impute: str | None = None) -> Column:
    """One of ``categories``; the first is the reference, which gets no design column."""
    if isinstance(categories, str):
        raise TypeError("categories must be a list of texts, not one text.")
    return Column(name, "categorical", categories=tuple(categories), impute=impute)


def binary(name: str, *, impute: bool | None = None) -> Column:
    """0 or 1, false or true."""
    return Column(name, "binary", impute=impute)


class Schema:
    """The declared columns of a table, in order. Raises ``ValueError`` where a name comes twice, ``TypeError`` for
    anything but columns.
    """

    def __init__(self, *columns: Column) -> None:
        if other := [column for column in columns if not isinstance(column, Column)]:
            raise TypeError(f"Give columns one by one, as in Schema(real('age', 0, 120)); {what_came(other[0])}.")
        self.columns = columns
        if len(set(self.names)) != len(columns):
            raise ValueError("A column name is declared twice.")

    @property
    def names(self) -> list[str]:
        """The columns' names, fit to select a DataFrame's columns before an upload."""
        return [column.name for column in self.columns]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(repr(column) for column in self.columns)})"

    def to_json(self) -> list[dict[str, Any]]:
        """The columns as the HTTP contract has them."""
        return [column.to_json() for column in self.columns]

    def check(self, frame: "pd.DataFrame") -> "TableCheck":
        """What would become of a table's cells, found here: nothing is sent anywhere.

        Nobody can tell once the table is in the vault: a column whose cells are coded otherwise than declared
        (``M`` for ``Male``) makes every row null, silently. What you see here comes from the rows: do not mend
        the declaration by it, unless it is plainly a mistake. Raises ``TypeError`` for anything but a DataFrame, and
        ``ValueError`` for one that names a column twice, which the server would reject.
        """
        from corevault._check import check_table  # noqa: PLC0415  (pandas is an optional extra)

        return check_table(self.columns, frame)
