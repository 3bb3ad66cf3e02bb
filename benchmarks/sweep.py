"""Sweeps over tables in several processes. A stopped sweep resumes where it was."""

import csv
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environment import find_commit
from benchmarks.figures import write_lines
from benchmarks.outcomes import Engine, Outcome, measure_table

_TABLES_PER_PROCESS = 50
"""Tables after which a process is replaced, so that its memory stays small. Forked ones run the code of the start."""


@dataclass(frozen=True)
class Sweep:
    """Tables ``0 .. tables - 1`` of a seed, at each epsilon, by each engine.

    ``in_turn``: each table at one epsilon only, in turn. So a sweep of the same length has more tables.
    """

    seed: int
    tables: int
    kinds: tuple[str, ...]
    epsilons: tuple[float, ...]
    engines: tuple[Engine, ...]
    in_turn: bool = False

    @property
    def lines_per_table(self) -> int:
        """The number of outcomes of each table."""
        return len(self.list_epsilons(0)) * len(self.engines)

    def list_epsilons(self, table: int) -> tuple[float, ...]:
        """List the epsilons at which a table is measured."""
        return (self.epsilons[table % len(self.epsilons)],) if self.in_turn else self.epsilons


def read_outcomes(path: Path) -> list[Outcome]:
    """Read the lines of a sweep; a last line without its end is left out."""
    if not path.exists():
        return []
    text = path.read_text()
    lines = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
    return [_parse(line) for line in lines]


def _parse(line: Mapping[str, str]) -> Outcome:
    kinds: Mapping[str, Callable[[str], Any]] = {
        "int": int, "float": lambda text: float(text or "nan"), "bool": lambda text: text == "True", "str": str
    }  # fmt: skip
    return Outcome(
        **{
            each.name: kinds[getattr(each.type, "__name__", str(each.type))](line[each.name])
            for each in fields(Outcome)
        }
    )


def run_sweep(
    sweep: Sweep, path: Path, processes: int, on_table: Callable[[int], None] = lambda _: None
) -> list[Outcome]:
    """Measure all tables, and write the outcomes to ``path`` in order.

    Outcomes are written at once to a file with the suffix ``.part``. If that file has outcomes of the same sweep, their
    tables are not measured again. ``on_table`` is called with the number of tables done.

    Raises:
        ValueError: if the part file is of another seed, or of other engines or epsilons.
    """
    part = path.with_suffix(".part")
    done = _keep_complete(sweep, read_outcomes(part))
    part.parent.mkdir(parents=True, exist_ok=True)
    write_lines(part, done, Outcome)
    rest = sorted(set(range(sweep.tables)) - {each.table for each in done})
    for count, outcomes in enumerate(_measure(sweep, rest, processes), start=sweep.tables - len(rest) + 1):
        write_lines(part, outcomes, append=True)
        done += outcomes
        on_table(count)
    place = {engine.name: at for at, engine in enumerate(sweep.engines)}
    done.sort(key=lambda each: (each.table, each.epsilon, place[each.engine]))
    write_lines(part, done, Outcome)
    part.replace(path)
    return done


def _keep_complete(sweep: Sweep, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Keep the outcomes of tables that were measured to the end."""
    names = {engine.name for engine in sweep.engines}
    for each in outcomes:
        if each.seed != sweep.seed or each.engine not in names or each.epsilon not in sweep.epsilons:
            raise ValueError("the part file is of another sweep: resume it with its options, or remove it")
    counts = Counter(each.table for each in outcomes)
    return [each for each in outcomes if counts[each.table] == sweep.lines_per_table and each.table < sweep.tables]


def _measure(sweep: Sweep, numbers: Iterable[int], processes: int) -> Iterator[list[Outcome]]:
    work = partial(_measure_one, sweep)
    if processes == 1:
        yield from map(work, numbers)
        return
    find_commit()  # forked processes then state the commit of the code that they run
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=_TABLES_PER_PROCESS) as pool:
        yield from pool.imap_unordered(work, numbers)


def _measure_one(sweep: Sweep, number: int) -> list[Outcome]:
    return measure_table(sweep.seed, number, sweep.kinds, sweep.list_epsilons(number), sweep.engines)
