"""Single figures with their targets, as lines of a CSV file with the environment."""

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from benchmarks.environment import describe_environment
from benchmarks.records import format_text

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value. ``target`` is text, empty without a target."""

    what: str
    value: float
    unit: str
    target: str = ""


def write_csv(path: Path, figures: Sequence[Figure], load: float) -> None:
    """Writes the figures. ``load`` is the load of the machine before the measurement."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*asdict(figures[0]), "load", *describe_environment()])
        for each in figures:
            figure = asdict(each) | {"value": format_three_digits(each.value)}
            rows.writerow([*figure.values(), f"{load:.1f}", *describe_environment().values()])


def read_csv(path: Path) -> tuple[list[Figure], dict[str, str]]:
    """Reads what :func:`write_csv` wrote: the figures, and their environment with "load before"."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [field.name for field in fields(Figure)]
    figures = [Figure(row["what"], float(row["value"]), row["unit"], row["target"]) for row in rows]
    circumstances = {name: text for name, text in rows[0].items() if name not in {*columns, "load"}}
    return figures, {**circumstances, "load before": rows[0]["load"]}


def write_lines(path: Path, results: Sequence[Any], kind: Any = None, *, append: bool = False) -> None:
    """Writes a line for each of these instances of one dataclass.

    ``kind`` is the dataclass, by default that of the first result. Without ``append``, the file gets a header.
    """
    with path.open("a" if append else "w", newline="") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(kind or results[0])], lineterminator="\n")
        if not append:
            lines.writeheader()
        lines.writerows({name: format_text(value) for name, value in asdict(each).items()} for each in results)


def read_lines(path: Path, kind: type[Row]) -> list[Row]:
    """Reads what :func:`write_lines` wrote: instances of a dataclass of texts, integers and real numbers."""
    types: list[tuple[str, Any]] = [(each.name, each.type) for each in fields(cast("Any", kind))]
    with path.open(newline="") as file:
        return [kind(**{name: _parse(each, line[name]) for name, each in types}) for line in csv.DictReader(file)]


def _parse(kind: Any, text: str) -> str | int | float:
    if kind is float:
        return float(text) if text else math.nan
    return int(text) if kind is int else text


def format_three_digits(value: float) -> str:
    """``value`` with at least three digits, without trailing zeros or commas, for programs."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
