"""Corevault's default method and other ways to buy a private posterior: ``make peers``.

Peers from other projects run in virtual environments below ``--envs``, which are made once. A stopped run continues
with ``--resume``. With ``--only``, the run counts as unfinished, so that others can be added by ``--resume``.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.environment import PAGES, describe_environment, find_commit
from benchmarks.figures import write_lines
from benchmarks.floors import compute_release_floors
from benchmarks.peers.contenders import CONTENDERS, Contender
from benchmarks.peers.environments import ENVIRONMENTS, TOO_SLOW, PeerFailed
from benchmarks.peers.measuring import describe_cell, measure_cell
from benchmarks.peers.page import render_page
from benchmarks.peers.results import FLOOR, Line, Notes, read_lines
from benchmarks.peers.tables import TABLES, PeerTable
from benchmarks.tables import draw_seed

EPSILONS: Final = (0.2, 1.0, 3.0)
SHOWN_PACKAGES: Final = (
    "diffprivlib", "scikit-learn", "d3p", "jax", "numpyro", "dpmm", "smartnoise-synth", "opendp", "mbi", "numpy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """The options of a run. Lines and notes of an unfinished run are in files with the suffix ``.part``."""

    out: Path
    envs: Path
    only: Sequence[str] | None
    epsilons: Sequence[float]

    @property
    def part(self) -> Path:
        """The lines so far."""
        return self.out.with_suffix(".part")

    @property
    def notes(self) -> Path:
        """The seed and the versions so far."""
        return self.out.with_name(f"{self.out.stem}-notes.part")


def main() -> None:
    """Measures all contenders on all tables, then writes lines and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=Path, default=ENVIRONMENTS, help="the folder of the peers' environments")
    parser.add_argument(
        "--out", type=Path, default=PAGES / "peers.csv", help="the CSV file; the page is in the same folder"
    )
    parser.add_argument("--seed", type=int, help="the base seed of releases; by default a fresh one is drawn")
    parser.add_argument(
        "--only", nargs="*", metavar="PEER", help="run only these; none: write the page of a stopped run"
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--resume", action="store_true", help="continue a stopped run")
    options = parser.parse_args()
    run = Run(options.out, options.envs, options.only, tuple(options.epsilons))
    if run.part.exists() and not options.resume:
        sys.exit(f"{run.part} is of a stopped run: add --resume, or remove it")
    notes = Notes.read(run.notes) if run.notes.exists() else Notes(options.seed or draw_seed())
    tables = {name: make() for name, make in TABLES.items()}
    if not run.part.exists():
        write_lines(run.part, [], Line)
    for contender in (each for each in CONTENDERS if run.only is None or each.name in run.only):
        for line in measure_contender(contender, tables, run, notes):
            write_lines(run.part, [line], append=True)
            print(line.table, line.epsilon, line.peer, f"{line.kl:.4g}", line.failure, flush=True)
        notes.write(run.notes)
    finish(run, tables, notes)


def measure_contender(contender: Contender, tables: Mapping[str, PeerTable], run: Run, notes: Notes) -> Iterator[Line]:
    """Measure a contender in all cells without lines. After a slow release, the rest of that table is left out."""
    done = {each.cell for each in read_lines(run.part)}
    chosen = [table for table in tables.values() if not contender.tables or table.name in contender.tables]
    places = [(table, epsilon) for table in chosen for epsilon in run.epsilons]
    places = [(table, epsilon) for table, epsilon in places if (table.name, epsilon, contender.name) not in done]
    slow: dict[str, str] = {}
    try:
        with contender.open(run.envs) as (make, versions):
            notes.versions[contender.name] = {name: versions[name] for name in SHOWN_PACKAGES if name in versions}
            for table, epsilon in places:
                if table.name in slow:
                    yield replace(describe_cell(contender, table, epsilon), failure=slow[table.name])
                    continue
                for line in measure_cell(contender, make, table, epsilon, notes.seed):
                    if line.failure.startswith(TOO_SLOW):
                        slow[table.name] = line.failure
                    yield line
    except PeerFailed as error:
        for table, epsilon in places:
            yield replace(describe_cell(contender, table, epsilon), failure=str(error))


def compute_floors(tables: Mapping[str, PeerTable], epsilons: Sequence[float]) -> Iterator[Line]:
    """Compute the floor of each table at each epsilon."""
    for name, table in tables.items():
        for epsilon, kl in zip(epsilons, compute_release_floors(table.case, epsilons), strict=True):
            blank = Line(name, table.problem.rows, table.problem.parameters, epsilon, table.problem.delta, FLOOR, 0)
            yield replace(blank, kl=float(kl), commit=find_commit())


def finish(run: Run, tables: Mapping[str, PeerTable], notes: Notes) -> None:
    """Write the lines in the page's order, with the floors, and the page."""
    order = {name: place for place, name in enumerate(TABLES)}
    peers = {name: place for place, name in enumerate([*(each.name for each in CONTENDERS), FLOOR])}
    lines = [*read_lines(run.part), *compute_floors(tables, run.epsilons)]
    lines.sort(key=lambda each: (order[each.table], each.epsilon, peers[each.peer]))
    write_lines(run.out, lines, Line)
    texts = {name: table.what for name, table in tables.items()}
    circumstances = describe_environment()
    if earlier := sorted({each.commit for each in lines if each.commit} - {circumstances["commit"]}):
        circumstances["earlier lines:"] = f"commits {', '.join(earlier)}"
    text = render_page(lines, texts, run.out.name, notes, circumstances)
    run.out.with_suffix(".md").write_text(text)
    print(text)
    if run.only is None:
        run.part.unlink()
        run.notes.unlink()


if __name__ == "__main__":
    main()
