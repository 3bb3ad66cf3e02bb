"""Hilbert coresets by the number of projections (Bayesian Pseudocoresets, 2020, supplement, Fig. 5)."""

from collections.abc import Iterator

from benchmarks.experiment import Experiment
from benchmarks.experiments.linear_regression import FEATURES, ROWS, SIZES, make_table
from benchmarks.records import Record
from benchmarks.runs import Job

PROJECTIONS, SEEDS = (100, 200, 500, 1000), 3
WEIGHTINGS = ("optimal", "realistic")


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields both weightings with every number of projections, at every size."""
    for seed in range(1 if quick else SEEDS):
        case = make_table(seed, 10 if quick else FEATURES)
        for size in (5, 12) if quick else SIZES:
            for weighting in WEIGHTINGS:
                for count in PROJECTIONS:
                    parameters = {"weighting": weighting, "projections": count}
                    yield Job(case, "giga", size, seed, parameters, label=f"{weighting}, J = {count:,}")


EXPERIMENT = Experiment(
    "projections",
    "Hilbert coresets by the number of projections",
    f"Linear regression as above (N = {ROWS:,}, {FEATURES} features), GIGA with J draws of the parameters. *Optimal*: "
    "draws from the full posterior. *Realistic*: draws from a corrupted guess.",
    plan_work,
)
