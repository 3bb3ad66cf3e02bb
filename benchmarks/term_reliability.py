"""Reliability of releases with terms, and of the same tables with plain columns.

Random tables of every kind (:mod:`benchmarks.tables`) are released twice at every epsilon: with the columns that were
drawn, and with random terms in their place (:mod:`benchmarks.tables.terms`). Both are compared with exact posteriors.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.environment import PAGES
from benchmarks.outcomes import Engine, Outcome, measure_drawn
from benchmarks.tables import Tables, draw_seed
from benchmarks.tables.real import list_missing_packages
from benchmarks.tables.terms import draw_terms

METHOD: Final = "dp-psvi-surrogate"
EPSILONS: Final = (0.2, 1.0, 3.0)
TABLES: Final = 92
"""Two blocks of all kinds."""
_MOST_SLOTS: Final = 50_000
_TERMS: Final = 9
"""The stream of a seed for terms."""
NAME: Final = "designs-random.csv"


def measure_tables(seed: int, tables: Sequence[int]) -> Iterator[Outcome]:
    """Measure both designs of each table; ``engine`` of a line names the design."""
    for number in tables:
        with warnings.catch_warnings(action="ignore"):
            drawn = Tables(seed).draw(number)
            bent = draw_terms(np.random.default_rng((seed, _TERMS, number)), drawn)
            if bent is None or drawn.case.facts.slots > _MOST_SLOTS:
                continue
            for name, each in (("columns", drawn), ("terms", bent)):
                for line in measure_drawn(each, seed, number, EPSILONS, [Engine(METHOD)]):
                    yield replace(line, engine=name)


def render_section(path: Path) -> list[str]:
    """Render the section of the page from the CSV; none without it."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    parts = ["## Reliability on random tables", "", *_HEADER]
    for epsilon in [str(each) for each in EPSILONS] + ["all"]:
        for name in ("columns", "terms"):
            own = [each for each in lines if each["engine"] == name and epsilon in {each["epsilon"], "all"}]
            parts.append(f"| {epsilon} | {name} | {_summarise(own)} |")
    tables = len({each["table"] for each in lines})
    return [*parts, "", _WORDS.format(tables=tables, seed=lines[0]["seed"], csv=path.name), ""]


def _summarise(own: Sequence[Mapping[str, str]]) -> str:
    calibrated = [each for each in own if each["grade"] == "calibrated"]
    coverage = np.array([float(each["coverage"]) for each in calibrated])
    of_noise = np.array([float(each["noise_coverage"]) for each in calibrated])
    failed = sum(bool(each["failure"]) for each in own)
    return (
        f"{len(own)} | {len(calibrated)} | {np.nanmean(coverage):.1%} | {np.nanmean(of_noise):.1%} | "
        f"{np.mean(coverage < 0.7):.0%} | {failed}"
    )


_HEADER: Final = (
    "| ε | features | releases | calibrated | coverage | of noise alone | coverage below 70 % | failed |",
    "|---|---|---|---|---|---|---|---|",
)
_WORDS: Final = """Each of {tables} random tables of seed {seed} was released with its columns, and with random terms
in their place ([every release]({csv})). *Coverage* is the share of parameters of calibrated releases with the exact
mean in the 95 % interval with noise. *Of noise alone* counts intervals of the stated noise, without the posterior's
width."""


def main() -> None:
    """Measure the tables, and write each line at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGES / NAME)
    parser.add_argument("--seed", type=int, default=None, help="by default a fresh one")
    parser.add_argument("--tables", type=int, default=TABLES)
    options = parser.parse_args()
    missing = list_missing_packages()
    if missing:
        sys.exit(f"Install {', '.join(missing)} first: some tables come from there.")
    seed = draw_seed() if options.seed is None else options.seed
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Outcome)])
        writer.writeheader()
        for line in measure_tables(seed, range(options.tables)):
            writer.writerow(asdict(line))
            file.flush()


if __name__ == "__main__":
    main()
