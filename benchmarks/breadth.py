"""How near private pseudocoresets come to the floors of random tables: ``make breadth``.

A hundred tables of :mod:`benchmarks.mixtures`, each at every epsilon at which something is promised, three runs each,
medians over the floor of its rows (:mod:`benchmarks.floors`). Private noise is rounded floating point with a seed, so
that a table that went astray can be looked at again.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.oracle import ClippedGaussianOracle
from app.inference.runner import run
from benchmarks.cases import Case, logistic
from benchmarks.environment import ROOT, described, environment
from benchmarks.experiments.unseen import METHOD, SIZE, promised, within_reach
from benchmarks.figures import write_lines
from benchmarks.floors import table_floors
from benchmarks.measures import divergence, posterior
from benchmarks.mixtures import mixture
from benchmarks.runs import Job, plan_of
from benchmarks.sources import RoundedNoise
from benchmarks.summaries import number

FOLDER: Final = ROOT / "docs" / "benchmarks"
TABLES, RUNS = 100, 3
_WORST: Final = 15
PAGE: Final = """# Random tables

{text}

{circumstances}

| ε | tables | within what is promised | median | nine in ten below | largest |
| ---: | ---: | ---: | ---: | ---: | ---: |
{lines}

The {worst} furthest from what is promised:

| table | rows x features | ε | KL (nats) | floor | KL over the floor | `noise_kl` | runs trusted |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |
{worst_lines}
"""
TEXT: Final = (
    "Written by `make breadth`. `dp-psvi-surrogate` at its defaults, 100 points, δ = 1/N, on tables that mix columns "
    f"of every kind at random, where σD²/N is at most 1.2; medians of {RUNS} runs. Promised is a KL of at most 5 times "
    "the floor of the rows up to ε = 0.2, and 8 times at ε = 1: what one Gaussian release of the whole budget would "
    "lose if it knew the mode and the information beforehand. Flags and levels are columns of 0 and 1 that are *not* "
    "declared as what they are. Every table: [breadth.csv](breadth.csv)."
)


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
        return self.ratio / promised(self.epsilon)


def reached(table: int, runs: int) -> Iterator[Reached]:
    """At each epsilon at which something is promised."""
    what, rows = mixture(table)
    case = logistic(f"mixture {table}", rows, bound=1.0)
    epsilons = within_reach(case)
    for epsilon, floor in zip(epsilons, table_floors(case, epsilons) if epsilons else (), strict=True):
        found = [_run(case, epsilon, seed) for seed in range(runs)]
        kl, noise_kl = (float(np.median([each[place] for each in found])) for place in (0, 1))
        yield Reached(table, what, epsilon, kl, float(floor), noise_kl, sum(each[2] for each in found))


def _run(case: Case, epsilon: float, seed: int) -> tuple[float, float, bool]:
    assert case.exact is not None
    plan, model = plan_of(Job(case, METHOD, SIZE, seed, epsilon=epsilon)), case.problem.model
    rng, noise = np.random.default_rng(seed), RoundedNoise(np.random.default_rng((seed, 1)))
    oracle = ClippedGaussianOracle(model, plan, case.facts, case.source, noise=noise, sampling=rng)
    release = run(plan, case.facts, oracle, rng, lambda _: None)
    said = release.diagnostics
    return divergence(posterior(case, release), case.exact), said["noise_kl"], said["trusted"]


def page(found: Sequence[Reached], circumstances: Mapping[str, str]) -> str:
    """By epsilon, then the worst."""
    lines = [_by_epsilon([each for each in found if each.epsilon == epsilon]) for epsilon in _epsilons(found)]
    worst = sorted(found, key=lambda each: -each.beyond)[:_WORST]
    told = [
        f"| {each.table} | {each.what} | {each.epsilon:g} | {number(each.kl)} | {number(each.floor)} "
        f"| {each.ratio:.1f} | {number(each.noise_kl)} | {each.trusted} |"
        for each in worst
    ]
    text, measured = (textwrap.fill(each, 120, break_on_hyphens=False) for each in (TEXT, described(circumstances)))
    return PAGE.format(
        text=text, circumstances=measured, lines="\n".join(lines), worst=len(worst), worst_lines="\n".join(told)
    )


def _epsilons(found: Sequence[Reached]) -> list[float]:
    return sorted({each.epsilon for each in found})


def _by_epsilon(found: Sequence[Reached]) -> str:
    ratios = np.array([each.ratio for each in found])
    within = sum(each.beyond <= 1 for each in found)
    spread = " | ".join(f"{np.quantile(ratios, at):.1f}" for at in (0.5, 0.9, 1.0))
    return f"| {found[0].epsilon:g} | {len(found)} | {within} | {spread} |"


def main() -> None:
    """Build, then write figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, help="so many instead of all, one run each; nothing is written")
    few = parser.parse_args().tables
    found = [each for table in range(few or TABLES) for each in reached(table, 1 if few else RUNS)]
    text = page(found, environment())
    print(text)
    if not few:
        write_lines(FOLDER / "breadth.csv", found)
        (FOLDER / "breadth.md").write_text(text)


if __name__ == "__main__":
    main()
