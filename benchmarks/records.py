"""Records of runs in CSV files: one line for each run, with its settings, quality and cost."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Final, Protocol

FINISHED: Final = "finished"
REFERENCE: Final = "reference"
"""The outcome of a record that is not a run, but a bound, a floor or a target for comparison."""


@dataclass(frozen=True, slots=True)
class Record:
    """One run or reference; a column that does not apply is ``nan``.

    ``epsilon`` is infinite for a private method without noise. ``kl`` is in nats, from the coreset's posterior to the
    full one, both in Laplace approximation. ``relative_kl`` is ``kl`` divided by the prior's. ``accuracy`` and
    ``log_likelihood`` (nats a row) are of held-out rows, and the ``full_`` columns are for the full posterior.
    ``seconds`` are processor time without ``source_seconds``, the time to generate rows. ``peak_mib`` is the memory on
    top of the table.
    """

    data: str
    method: str
    rows: int
    parameters: int
    size: int
    epsilon: float = math.nan
    seed: int = 0
    kl: float = math.nan
    relative_kl: float = math.nan
    accuracy: float = math.nan
    log_likelihood: float = math.nan
    full_accuracy: float = math.nan
    full_log_likelihood: float = math.nan
    seconds: float = math.nan
    source_seconds: float = math.nan
    peak_mib: float = math.nan
    outcome: str = FINISHED
    commit: str = ""


class Sink(Protocol):
    """A function that writes records."""

    def __call__(self, record: Record) -> None:
        """Writes ``record`` at once."""


@contextmanager
def open_sink(path: Path, old: Iterable[Record] = ()) -> Iterator[Sink]:
    """A sink that appends to a new CSV file, after the ``old`` records.

    Each line is written at once to a file with the suffix ``.part``. It replaces ``path`` when all is done.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Record)], lineterminator="\n")
        writer.writeheader()
        for record in old:
            _write(writer, stream, record)
        yield lambda record: _write(writer, stream, record)
    partial.replace(path)


def _write(writer: "csv.DictWriter[str]", stream: IO[str], record: Record) -> None:
    writer.writerow({name: format_text(value) for name, value in asdict(record).items()})
    stream.flush()


def format_text(value: str | int | float) -> str:
    """The text of a value in a CSV file: real numbers to six digits, NaN as an empty text."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def read(path: Path) -> list[Record]:
    """The records that :func:`open_sink` wrote."""
    with path.open(newline="") as stream:
        return [_record(row) for row in csv.DictReader(stream)]


def read_stopped(path: Path) -> list[Record]:
    """The finished records of a stopped run of ``path``."""
    partial = path.with_suffix(".part")
    text = partial.read_text() if partial.exists() else ""
    return [_record(row) for row in csv.DictReader(text[: text.rfind("\n") + 1].splitlines())]


def _record(row: Mapping[str, str]) -> Record:
    values: dict[str, Any] = {field.name: _value(field.type, row[field.name]) for field in fields(Record)}
    return Record(**values)


def _value(kind: object, text: str) -> str | int | float:
    if kind is str:
        return text
    if kind is int:
        return int(text)
    return float(text) if text else math.nan
