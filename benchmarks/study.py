"""A study: a figure of a paper that is not a plot of one quantity over one axis."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Measure(Protocol):
    """A measurement that writes a CSV file."""

    def __call__(self, path: Path, *, quick: bool) -> None:
        """Writes ``path``; with ``quick``, after a small run as a check."""


@dataclass(frozen=True, slots=True)
class Study:
    """A figure with its measurement.

    ``measure`` writes the CSV file, and is None if other experiments write it. ``draw`` makes the figure from that
    file, and ``tabulate`` a table in Markdown. ``sources`` are names of CSV files, by default that of the study.
    """

    name: str
    title: str
    text: str
    measure: Measure | None
    draw: Callable[[Path, Path], None]
    tabulate: Callable[[Path], str]
    sources: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the CSV files that the figure needs."""
        return self.sources or (self.name,)
