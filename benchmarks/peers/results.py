"""Lines of the comparison: one for each release, and one for each failure."""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Final

FLOOR: Final = "floor"
"""The name of a reference in place of a peer: the KL of one release of the whole budget, given the posterior."""


@dataclass(frozen=True, slots=True)
class Line:
    """One release of a peer, or its failure.

    ``kl`` is in nats, from the released Gaussian to the exact posterior; ``mean_error`` is in posterior standard
    deviations. ``covers`` is false for a point estimate, which was given the exact covariance. ``seconds`` are
    processor time, of this process only.
    """

    table: str
    rows: int
    parameters: int
    epsilon: float
    delta: float
    peer: str
    seed: int
    settings: str = ""
    kl: float = math.nan
    mean_error: float = math.nan
    covers: bool = True
    seconds: float = math.nan
    failure: str = ""
    commit: str = ""

    @property
    def cell(self) -> tuple[str, float, str]:
        """Table, epsilon and peer."""
        return self.table, self.epsilon, self.peer


def read_lines(path: Path) -> list[Line]:
    """Read lines; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [_parse(row) for row in csv.DictReader(file)]


def _parse(row: Mapping[str, str]) -> Line:
    values: dict[str, object] = {}
    for each in fields(Line):
        text = row[each.name]
        if each.type is float:
            values[each.name] = float(text or "nan")
        elif each.type is bool:
            values[each.name] = text == "True"
        else:
            values[each.name] = int(text) if each.type is int else text
    return Line(**values)  # type: ignore[arg-type]


@dataclass(slots=True)
class Notes:
    """The base seed of a run, and the versions of packages by peer. They are added as peers start."""

    seed: int
    versions: dict[str, dict[str, str]] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the notes as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> "Notes":
        """Read what :meth:`write` wrote."""
        return cls(**json.loads(path.read_text()))
