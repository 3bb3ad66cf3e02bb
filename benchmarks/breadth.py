"""Distance of private pseudocoresets from the floors of random tables: ``make breadth``.

Runs a hundred tables of :mod:`benchmarks.mixtures` three times at every epsilon with a target, and divides the medians
by the floor of the rows (:mod:`benchmarks.floors`). Noise is rounded floating point and has a seed, so that a bad table
can be run again. The runs of one table have the same random numbers at every epsilon.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.breadth_page import RUNS, TABLES, render_page
from benchmarks.cases import Case, make_logistic
from benchmarks.environment import PAGES, describe_environment
from benchmarks.experiments.unseen import METHOD, SIZE, list_within_reach, read_promise
from benchmarks.figures import write_lines
from benchmarks.floors import compute_table_floors
from benchmarks.measures import fit_posterior
from benchmarks.mixtures import draw_mixture
from benchmarks.runs import Job, make_seeded_release
from support.divergence import compute_divergence

_MOST_RUNS = 1000
"""The most runs of a table, so that no two runs have the same seed."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Medians over the runs of a table at one epsilon.

    ``kl`` and ``floor`` are in nats. ``trusted`` counts the trusted runs.
    """

    table: int
    what: str
    epsilon: float
    kl: float
    floor: float
    noise_kl: float
    trusted: int

    @property
    def ratio(self) -> float:
        """KL divided by the floor."""
        return self.kl / self.floor

    @property
    def beyond(self) -> float:
        """KL divided by the floor and by the target."""
        return self.ratio / read_promise(self.epsilon)


def measure_table(table: int, runs: int) -> Iterator[Reached]:
    """Measures a table at each epsilon with a target."""
    what, rows = draw_mixture(table)
    case = make_logistic(f"mixture {table}", rows, bound=1.0)
    epsilons = list_within_reach(case)
    for epsilon, floor in zip(epsilons, compute_table_floors(case, epsilons) if epsilons else (), strict=True):
        measured = [measure_run(case, epsilon, table, number) for number in range(runs)]
        kl, noise_kl = (float(np.median([each[place] for each in measured])) for place in (0, 1))
        yield Reached(table, what, epsilon, kl, float(floor), noise_kl, sum(each[2] for each in measured))


def measure_run(case: Case, epsilon: float, table: int, number: int) -> tuple[float, float, bool]:
    """KL and ``noise_kl`` in nats, and whether the release is trusted.

    ``number`` counts the runs of ``table``.
    """
    assert case.exact is not None
    release = make_seeded_release(Job(case, METHOD, SIZE, _MOST_RUNS * table + number, epsilon=epsilon))
    diagnostics = release.diagnostics
    kl = compute_divergence(fit_posterior(case, release), case.exact)
    return kl, diagnostics["noise_kl"], diagnostics["trusted"]


def main() -> None:
    """Runs all tables, then writes figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, help="run this number of tables once each, and write nothing")
    few = parser.parse_args().tables
    results = [each for table in range(few or TABLES) for each in measure_table(table, 1 if few else RUNS)]
    text = render_page(results, describe_environment())
    print(text)
    if not few:
        write_lines(PAGES / "breadth.csv", results)
        (PAGES / "breadth.md").write_text(text)


if __name__ == "__main__":
    main()
