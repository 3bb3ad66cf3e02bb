"""Records of mutants that were run, as lines of a CSV file."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.environment import PAGES
from benchmarks.figures import read_lines, write_lines
from tools.mutants.mutant import Mutant
from tools.mutants.tree import ROOT

RECORDS: Final = PAGES / "mutants.csv"
CAUGHT: Final = "caught"


@dataclass(frozen=True, slots=True)
class Record:
    """One mutant, as it was run.

    ``seconds`` of wall time include the start of the catcher. ``digest`` is of the mutant, its file and its catcher's
    file; ``commit`` is the last one before the run.
    """

    promise: str
    mutant: str
    file: str
    catcher: str
    verdict: str
    seconds: float
    commit: str
    digest: str


def compute_digest(mutant: Mutant, tree: Path = ROOT) -> str:
    """Compute a digest of the mutant, its file and its catcher's file in ``tree``."""
    files = filter(None, (mutant.file, mutant.catcher_file))
    parts = [repr(mutant).encode(), *((tree / name).read_bytes() for name in files)]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:12]


def read_records(path: Path) -> list[Record]:
    """Read the records of earlier runs; empty without a file."""
    return read_lines(path, Record) if path.exists() else []


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write all records."""
    write_lines(path, records, Record)


def keep_current(records: Iterable[Record], mutants: Iterable[Mutant]) -> dict[str, Record]:
    """Find, by mutant, the records whose mutant, file and catcher are still the same."""
    digests = {mutant.name: compute_digest(mutant) for mutant in mutants}
    return {each.mutant: each for each in records if digests.get(each.mutant) == each.digest}
