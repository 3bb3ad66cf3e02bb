"""The mean of a Gaussian in 200 and 500 dimensions (Bayesian Pseudocoresets, 2020, Fig. 2a and 2b)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.cases import make_gaussian_mean
from benchmarks.experiment import EVERYTHING, Experiment
from benchmarks.lower_bound import compute_subset_lower_bound
from benchmarks.records import REFERENCE, Record
from benchmarks.runs import Job

ROWS, SEEDS, DELTA = 1_000, 10, 0.5
SIZES = (1, 2, 5, 10, 20, 50, 100, 150, 200)
METHODS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("psvi", {"iterations": 500}, "PSVI"),
    ("sparse-vi", {}, "SparseVI"),
    ("giga", {"weighting": "optimal"}, "GIGA, optimal"),
    ("giga", {"weighting": "realistic"}, "GIGA, realistic"),
    ("uniform", {}, "uniform"),
)


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields the references and runs, with new rows for each seed."""
    for d in (20,) if quick else (200, 500):
        name, sizes = f"d = {d}", (1, 10) if quick else SIZES
        for size in sizes:
            bound = compute_subset_lower_bound(ROWS, size, d, DELTA)
            yield Record(name, "bound for any subset of rows", ROWS, d, size, kl=bound, outcome=REFERENCE)
        for seed in range(2 if quick else SEEDS):
            rng = np.random.default_rng((seed, d))
            case = make_gaussian_mean(name, rng.standard_normal((ROWS, d)), rng.standard_normal((ROWS, d)))
            for size in sizes:
                for method, parameters, label in METHODS:
                    yield Job(case, method, size, seed, parameters, label=label)


EXPERIMENT = Experiment(
    "gaussian-mean",
    "Gaussian mean",
    f"N = {ROWS:,} rows of a standard normal in d dimensions, unit noise, prior N(0, I), new rows for each seed. "
    "PSVI has T = 500 and SparseVI 100 steps for each chosen row, with the default step sizes. GIGA has 100 draws. "
    f"The bound is that of Proposition 1 at δ = {DELTA:g}: on half of all tables, no M rows with any weights are "
    "below it. "
    "KL is exact here, and values of the order of 1e-12 are rounding errors.",
    plan_work,
    EVERYTHING,
)
