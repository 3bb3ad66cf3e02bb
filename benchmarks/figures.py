"""Single figures with their targets, as lines of a CSV file that says what they were measured on."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.environment import environment


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
            figure = asdict(each) | {"value": number(each.value)}
            rows.writerow([*figure.values(), f"{load:.1f}", *environment().values()])


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
