"""Counts missing and clamped cells on the owner's machine, before the upload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corevault._advice import (
    LEAST_ROWS,
    Groups,
    advise_clamped,
    advise_outside,
    advise_ragged,
    advise_types,
    advise_unfit,
    count_unfit,
)
from corevault._cells import Array, Categories, Cells, parse_values
from corevault._reading import Batch, Rows, open_rows
from corevault._show import Table
from corevault._upload import Upload
from corevault.errors import InvalidArgument

if TYPE_CHECKING:
    from corevault.schema import Column

Flags = NDArray[np.bool_]
_SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars"}


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """Numbers of cells of one column that the server would change.

    A ``missing`` cell is imputed if the schema declares a value for it; otherwise its row becomes a null row. A
    ``clamped`` cell is outside the declared bounds and is replaced by the nearer bound.
    """

    missing: int
    clamped: int


@dataclass(frozen=True, slots=True, repr=False)
class TableCheck:
    """Counts of a table's rows and cells. They are never sent to the server.

    ``absent`` lists declared columns that the table does not have. ``unknown`` lists columns of the table that are not
    declared. The server rejects a file with either of them. ``ragged_rows`` of a CSV have more or fewer cells than its
    header; they are among the null rows. ``misfits`` has a sentence about them, and one for each column with text that
    fits no declared value, or with most cells outside its bounds. For the privacy unit's column, one value outside is
    enough. ``better_types`` has one for each sign of another type.

    >>> print(Schema(integer("age", 17, 90)).check({"age": [30, 120, None], "name": ["a", "b", "c"]}))
    1 of 3 rows would be null.
    name: not declared
    age: 1 missing, 1 clamped
    """

    rows: int
    null_rows: int
    columns: dict[str, ColumnCheck]
    absent: tuple[str, ...]
    unknown: tuple[str, ...]
    misfits: tuple[str, ...] = ()
    better_types: tuple[str, ...] = ()
    ragged_rows: int = 0

    @property
    def advice(self) -> tuple[str, ...]:
        """All sentences about signs of a wrong declaration or wrong cells.

        >>> Schema(integer("age", 17, 90)).check({"age": [30, "old"]}).advice
        ('age: 1 cell is no whole number such as 7.',)
        """
        return self.misfits + self.better_types

    @property
    def null_share(self) -> float:
        """The share of rows that would become null rows; 0 for a table without rows.

        >>> Schema(integer("age", 17, 90)).check({"age": [30, None]}).null_share
        0.5
        """
        return self.null_rows / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        lines = [f"{self.null_rows} of {self.rows} rows would be null."]
        lines += [f"{name}: no such column in the table" for name in self.absent]
        lines += [f"{name}: not declared" for name in self.unknown]
        return "\n".join(lines) + self.counts() + self.list_advice()

    def __repr__(self) -> str:
        return f"TableCheck({self.null_rows} of {self.rows} rows would be null)"

    def _repr_html_(self) -> str:
        rows = [
            {"column": name, "missing": column.missing, "clamped": column.clamped}
            for name, column in self.columns.items()
        ]
        rows += [{"column": name, "missing": "no such column in the table", "clamped": ""} for name in self.absent]
        rows += [{"column": name, "missing": "not declared", "clamped": ""} for name in self.unknown]
        advice = "".join(f"<li>{escape(each)}</li>" for each in self.advice)
        listed = f"<ul>{advice}</ul>" if advice else ""
        return f"<p>{self.null_rows} of {self.rows} rows would be null.</p>{Table(rows)._repr_html_()}{listed}"

    def counts(self) -> str:
        """One line for each column with missing or clamped cells; each line starts with a line break.

        >>> Schema(integer("age", 17, 90)).check({"age": [30, 120]}).counts().strip()
        'age: 0 missing, 1 clamped'
        """
        return "".join(
            f"\n{name}: {column.missing} missing, {column.clamped} clamped"
            for name, column in self.columns.items()
            if column.missing or column.clamped
        )

    def list_advice(self) -> str:
        """The advice, one line each; each line starts with a line break.

        >>> Schema(integer("age", 17, 90)).check({"age": [30, "old"]}).list_advice().strip()
        'age: 1 cell is no whole number such as 7.'
        """
        return "".join(f"\n{each}" for each in self.advice)

    def describe_columns(self) -> str:
        """How the table's columns differ from the declared ones, in one or two sentences; empty if they do not.

        A table without any declared column has no header. Its first row is not quoted, because it holds values.

        >>> Schema(binary("sick"), integer("age", 17, 90)).check({"age": [30]}).describe_columns()
        "The table's columns are not the declared ones (missing: sick)."
        """
        if not self.absent and not self.unknown:
            return ""
        if not self.columns:
            signs = _SEPARATORS.items()
            separator = next((name for sign, name in signs if any(sign in each for each in self.unknown)), None)
            separated = f" The columns seem to be separated by {separator}; write commas." if separator else ""
            return (
                "The table has no declared column. Its header must have these names, separated by commas: "
                f"{', '.join(self.absent)}.{separated}"
            )
        missing = f"missing: {', '.join(self.absent)}" if self.absent else ""
        undeclared = f"not declared: {', '.join(self.unknown)}" if self.unknown else ""
        return f"The table's columns are not the declared ones ({'; '.join(filter(None, (missing, undeclared)))})."


def check_table(columns: "Sequence[Column]", upload: Upload, unit: str | None = None) -> TableCheck:
    """Count the rows and cells of ``upload``, which is read once, in batches.

    ``unit`` is the name of the column that identifies the privacy unit, if there is one. A value of this column is not
    clamped. If it is outside the declared bounds, its row becomes a null row.

    Raises ``InvalidArgument`` if the file cannot be read or a column name appears twice. It is also raised if the
    server does not read the Arrow type of a declared column.
    """
    with open_rows(upload) as rows:
        if len(set(rows.names)) < len(rows.names):
            raise InvalidArgument(
                "A column name appears twice in the first line of the table. This line must be the header, with each "
                "name once."
            )
        _check_types(columns, rows)
        counts = {column.name: _Count(column, column.name == unit) for column in columns if column.name in rows.names}
        groups = Groups(name for name in rows.names if name in counts and counts[name].is_number)
        total = null = ragged = 0
        for batch in rows.batches:
            flags = _null_rows(rows.names, batch, counts)
            groups.add({name: count.values for name, count in counts.items()})
            total += len(flags) + batch.ragged
            null += int(flags.sum()) + batch.ragged
            ragged += batch.ragged
    declared = [column.name for column in columns]
    return TableCheck(
        rows=total,
        null_rows=null,
        columns={name: ColumnCheck(count.missing, count.clamped) for name, count in counts.items()},
        absent=tuple(name for name in declared if name not in rows.names),
        unknown=tuple(name for name in rows.names if name not in declared),
        misfits=tuple(_list_misfits(counts.values(), total, ragged)),
        better_types=tuple(advise_types(_list_truths(counts), groups)) if total - ragged >= LEAST_ROWS else (),
        ragged_rows=ragged,
    )


def _list_misfits(counts: "Iterable[_Count]", rows: int, ragged: int) -> Iterator[str]:
    if ragged:
        yield advise_ragged(ragged)
    for count in counts:
        if count.unfit:
            yield advise_unfit(count.column, count.unfit)
        if count.outside:
            yield advise_outside(count.column, count.outside)
        if 2 * count.clamped > rows:
            yield advise_clamped(count.column, count.clamped)


def _list_truths(counts: "Mapping[str, _Count]") -> list[str]:
    return [name for name, count in counts.items() if count.is_number and count.has_only_truths]


def _check_types(columns: "Sequence[Column]", rows: Rows) -> None:
    for column in columns:
        if column.name in rows.unread:
            raise InvalidArgument(
                f"The column {column.name!r} has the Arrow type {rows.unread[column.name]}, which the server does not "
                "read; convert it to text, numbers or truth values."
            )


def _null_rows(names: Sequence[str], batch: Batch, counts: "dict[str, _Count]") -> Flags:
    null = np.zeros(len(batch.columns[0]) if batch.columns else 0, dtype=bool)
    for name, cells in zip(names, batch.columns, strict=True):
        if name in counts:
            null |= counts[name].add(cells)
    return null


class _Count:
    """Counts the cells of one column, batch by batch."""

    def __init__(self, column: "Column", is_unit: bool) -> None:
        self.column = column
        self._is_unit = is_unit
        self._categories = None if column.categories is None else Categories(column.categories)
        self.missing = self.clamped = self.unfit = self.outside = 0
        self.is_number = column.type in {"integer", "real"} and not is_unit
        self.has_only_truths = True
        self.values: Array = np.empty(0)
        """The values of the last batch."""

    def add(self, cells: Cells) -> Flags:
        """Counts the cells of a batch; returns flags ``(n,)`` of the rows that this column makes null."""
        column = self.column
        values = self.values = (
            parse_values(column, cells) if self._categories is None else self._categories.codes(cells)
        )
        missing = np.isnan(values)
        self.unfit += count_unfit(cells, missing)
        self.has_only_truths = self.has_only_truths and bool(np.isin(values, (0.0, 1.0)).all())
        if column.lower is not None and column.upper is not None:
            outside = (values < column.lower) | (values > column.upper)
            if self._is_unit:
                missing |= outside
                self.outside += int(outside.sum())
            else:
                self.clamped += int(outside.sum())
        self.missing += int(missing.sum())
        return missing if column.impute is None else np.zeros_like(missing)
