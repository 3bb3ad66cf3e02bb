"""How near private pseudocoresets come to the floors of random tables: ``make breadth``.

A hundred tables of :mod:`benchmarks.mixtures`, each at every epsilon at which something is promised, three runs each,
medians over the floor of its rows (:mod:`benchmarks.floors`). Noise is rounded floating point and has a seed, so that a
table that went astray can be looked at again; one table's runs have the same coins at every epsilon.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.breadth_page import RUNS, TABLES, page
from benchmarks.cases import Case, logistic
from benchmarks.environment import PAGES, environment
from benchmarks.experiments.unseen import METHOD, SIZE, read_promise, within_reach
from benchmarks.figures import write_lines
from benchmarks.floors import table_floors
from benchmarks.measures import posterior
from benchmarks.mixtures import mixture
from benchmarks.runs import Job, seeded_release
from support.divergence import divergence

_MOST_RUNS = 1000
"""Of a table, so that no two runs have one seed."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Medians over the runs of a table at one epsilon; ``trusted`` counts them, ``kl`` and ``floor`` are in nats."""

    table: int
    what: str
    epsilon: float
    kl: float
    floor: float
    noise_kl: float
    trusted: int

    @property
    def ratio(self) -> float:
        """KL over the floor."""
        return self.kl / self.floor

    @property
    def beyond(self) -> float:
        """KL over what is promised."""
        return self.ratio / read_promise(self.epsilon)


def measure_table(table: int, runs: int) -> Iterator[Reached]:
    """At each epsilon at which something is promised."""
    what, rows = mixture(table)
    case = logistic(f"mixture {table}", rows, bound=1.0)
    epsilons = within_reach(case)
    for epsilon, floor in zip(epsilons, table_floors(case, epsilons) if epsilons else (), strict=True):
        found = [measured_run(case, epsilon, table, number) for number in range(runs)]
        kl, noise_kl = (float(np.median([each[place] for each in found])) for place in (0, 1))
        yield Reached(table, what, epsilon, kl, float(floor), noise_kl, sum(each[2] for each in found))


def measured_run(case: Case, epsilon: float, table: int, number: int) -> tuple[float, float, bool]:
    """KL and ``noise_kl`` in nats, and whether the release is trusted; ``number`` of the runs of ``table``."""
    assert case.exact is not None
    release = seeded_release(Job(case, METHOD, SIZE, _MOST_RUNS * table + number, epsilon=epsilon))
    said = release.diagnostics
    return divergence(posterior(case, release), case.exact), said["noise_kl"], said["trusted"]


def main() -> None:
    """Build, then write figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, help="so many instead of all, one run each; nothing is written")
    few = parser.parse_args().tables
    found = [each for table in range(few or TABLES) for each in measure_table(table, 1 if few else RUNS)]
    text = page(found, environment())
    print(text)
    if not few:
        write_lines(PAGES / "breadth.csv", found)
        (PAGES / "breadth.md").write_text(text)


if __name__ == "__main__":
    main()
