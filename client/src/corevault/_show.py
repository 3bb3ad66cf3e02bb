"""Short texts and HTML tables for terminals and notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any

from corevault._arguments import import_pandas
from corevault.errors import MissingDependency

_MOST_ROWS = 60
_LONGEST_CELL = 64  # a hash in hexadecimal fits


class Table(Sequence[Mapping[str, Any]]):
    """Rows with the same names, which print as a table. It replaces a DataFrame where pandas is missing.

    >>> Table([{"name": "age", "mean": 1.25}, {"name": "sex", "mean": -0.5}])
    name   mean
    age    1.25
    sex    -0.5
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
        self.rows = [dict(row) for row in rows]
        self.columns = list(columns) if columns is not None else list(self.rows[0]) if self.rows else []

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        cells = [self.columns, *([format_value(row.get(name)) for name in self.columns] for row in self._first_rows())]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
        return "\n".join([*(line.rstrip() for line in lines), *self._rest()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(format_value(row.get(name)))}</td>" for name in self.columns) + "</tr>"
            for row in self._first_rows()
        )
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._rest())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _first_rows(self) -> list[dict[str, Any]]:
        return self.rows[:_MOST_ROWS]

    def _rest(self) -> list[str]:
        hidden = len(self.rows) - _MOST_ROWS
        return [f"and {hidden} more rows"] if hidden > 0 else []

    def to_pandas(self) -> Any:
        """The same table as a DataFrame (needs the ``pandas`` extra)."""
        return import_pandas().DataFrame(self.rows, columns=self.columns)


def make_table(rows: Sequence[Mapping[str, Any]], *, index: str | None = None) -> Any:
    """A DataFrame if pandas is installed, else a ``Table``. ``index`` is the column that becomes the index."""
    table = Table(rows)
    try:
        frame = table.to_pandas()
    except MissingDependency:
        return table
    return frame if index is None else frame.set_index(index)


def format_value(value: object) -> str:
    """``value`` as the short text of one cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, Mapping):
        text = ", ".join(f"{name}={format_value(each)}" for name, each in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(format_value(each) for each in value)
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def show_facts(facts: Mapping[str, object]) -> str:
    """An HTML table of names and values, without empty values."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(format_value(value))}</td></tr>"
        for name, value in facts.items()
        if value not in (None, "", ())
    )
    return f"<table><tbody>{rows}</tbody></table>"


def write_call(name: str, facts: Mapping[str, object]) -> str:
    """A text such as ``Dataset(id='ds_1', name='adult')``, without empty values."""
    parts = (
        f"{key}={value!r}" if isinstance(value, str | int | tuple) else f"{key}={format_value(value)}"
        for key, value in facts.items()
        if value not in (None, "", ())
    )
    return f"{name}({', '.join(parts)})"
