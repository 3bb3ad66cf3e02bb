"""Single figures with their targets, as lines of a CSV file that says what they were measured on."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.environment import environment
from benchmarks.records import text


@dataclass(frozen=True, slots=True)
class Figure:
    """``target`` in words, where there is one."""

    what: str
    value: float
    unit: str
    target: str = ""


def write_csv(path: Path, figures: Sequence[Figure], load: float) -> None:
    """``load`` is that of the machine before."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*asdict(figures[0]), "load", *environment()])
        for each in figures:
            figure = asdict(each) | {"value": three_digits(each.value)}
            rows.writerow([*figure.values(), f"{load:.1f}", *environment().values()])


def write_lines(path: Path, found: Sequence[Any]) -> None:
    """A line for each of these instances of one dataclass."""
    with path.open("w", newline="") as file:
        lines = csv.DictWriter(file, [field.name for field in fields(found[0])], lineterminator="\n")
        lines.writeheader()
        lines.writerows({name: text(value) for name, value in asdict(each).items()} for each in found)


def three_digits(value: float) -> str:
    """At least as many, without zeros at the end or commas: to be read by a program, too."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
