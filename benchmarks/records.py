"""One line a run: what was asked, how good the answer is, and what it took. CSV, so that anybody can read it again."""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, Final, Protocol

FINISHED: Final = "finished"
REFERENCE: Final = "reference"
"""Not a run: a bound, a floor or a target that runs are compared with."""


@dataclass(frozen=True, slots=True)
class Record:
    """``nan`` where a column does not apply. ``epsilon`` is infinite for a private method without noise.

    ``kl`` is in nats, from the coreset's posterior to the full one, both in Laplace approximation; ``relative_kl``
    divides by the prior's. ``accuracy`` and ``log_likelihood`` (nats a row) are of held-out rows; those of the full
    posterior stand beside them. ``seconds`` of the processor leave out ``source_seconds``, in which rows were made;
    ``peak_mib`` is memory beyond what the table itself takes.
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
    """Takes records as they come."""

    def __call__(self, record: Record) -> None:
        """Keep ``record``, at once."""


@contextmanager
def open_sink(path: Path, kept: Iterable[Record] = ()) -> Iterator[Sink]:
    """A sink that appends to a new CSV file, after the ``kept`` ones. It is at ``path`` once all is done.

    Until then every line, once written, is in a file beside it, and what was at ``path`` stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    with partial.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [field.name for field in fields(Record)], lineterminator="\n")
        writer.writeheader()
        for record in kept:
            _write(writer, stream, record)
        yield lambda record: _write(writer, stream, record)
    partial.replace(path)


def _write(writer: "csv.DictWriter[str]", stream: IO[str], record: Record) -> None:
    writer.writerow({name: text(value) for name, value in asdict(record).items()})
    stream.flush()


def text(value: str | int | float) -> str:
    """As it is written into a CSV file: reals to six digits, nothing for what is no number."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def read(path: Path) -> list[Record]:
    """The records that :func:`open_sink` wrote."""
    with path.open(newline="") as stream:
        return [_record(row) for row in csv.DictReader(stream)]


def _record(row: Mapping[str, str]) -> Record:
    values: dict[str, Any] = {field.name: _value(field.type, row[field.name]) for field in fields(Record)}
    return Record(**values)


def _value(kind: object, text: str) -> str | int | float:
    if kind is str:
        return text
    if kind is int:
        return int(text)
    return float(text) if text else math.nan
