"""Logistic regression, small and large (Bayesian Pseudocoresets, 2020, Fig. 3, 6 and 8)."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from benchmarks.adult import SHARED, load_adult10, require
from benchmarks.cases import Case, make_logistic, narrow
from benchmarks.designs import Rows, draw_synth100k
from benchmarks.experiment import Experiment
from benchmarks.records import Record
from benchmarks.runs import Job

SEEDS, NARROW = 10, 2.0
SMALL_SIZES, LARGE_SIZES = (2, 5, 10, 20, 50, 100), (10, 20, 50, 100, 200)
SMALL = {"iterations": 1_500, "minibatch": 400}
LARGE = {"minibatch": 200}
SMALL_METHODS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("psvi", SMALL, "PSVI"),
    ("incremental-psvi", {}, "incremental PSVI"),
    ("sparse-vi", {}, "SparseVI"),
    ("giga", {"weighting": "optimal"}, "GIGA, optimal"),
    ("frank-wolfe", {"weighting": "optimal"}, "Frank–Wolfe, optimal"),
    ("omp", {"weighting": "optimal"}, "OMP, optimal"),
    ("uniform", {}, "uniform"),
)
LARGE_METHODS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("psvi", LARGE, "PSVI"),
    ("sparse-vi", LARGE, "SparseVI"),
    ("giga", {"weighting": "optimal"}, "GIGA, optimal"),
    ("giga", {"weighting": "realistic"}, "GIGA, realistic"),
    ("uniform", {}, "uniform"),
    ("dp-psvi", {}, "dp-psvi, clamped, ε = 0.2"),
    ("dp-psvi-surrogate", {}, "dp-psvi-surrogate, ε = 0.2"),
)
_BOUNDS = {"phishing": 1.0, "synth_lr": 4.0}


def make_small_rows(name: str) -> tuple[Rows, Rows]:
    """Training and held-out rows of one of the two small data files."""
    with np.load(require(SHARED / f"{name}.npz")) as arrays:
        rows, held_out = (
            Rows(arrays[x][:, :-1].astype(np.float64), (arrays[y] > 0).astype(np.float64))
            for x, y in (("X", "y"), ("Xt", "yt"))
        )
    return rows, held_out


@cache
def make_small(name: str) -> Case:
    """The table of a small data file."""
    rows, held_out = make_small_rows(name)
    return make_logistic(name, rows, bound=_BOUNDS[name], held_out=held_out)


@cache
def make_large(name: str) -> Case:
    """One of the two large tables, which replace the paper's."""
    if name == "synth100k":
        rows, held_out = draw_synth100k()
        return make_logistic(name, rows, bound=8.0, held_out=held_out)
    train, test = load_adult10()
    return make_logistic(name, Rows(*train), bound=16.0, held_out=Rows(*test))


def clamp(case: Case) -> Case:
    """The case with columns clamped to ±2.

    Some methods start their points at random within the bounds. ±2 is about as wide as the paper's normal start.
    """
    return narrow(case, NARROW)


def plan_small_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every size."""
    for case in map(make_small, ("phishing", "synth_lr")):
        for size in (2, 10) if quick else SMALL_SIZES:
            for method, parameters, label in SMALL_METHODS:
                for seed in range(2 if quick else SEEDS):
                    yield Job(case, method, size, seed, parameters, label=label)


def plan_large_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every size, private ones at one epsilon."""
    for case in map(make_large, ("adult10",) if quick else ("synth100k", "adult10")):
        for size in (20,) if quick else LARGE_SIZES:
            for method, parameters, label in LARGE_METHODS:
                epsilon = 0.2 if method.startswith("dp-") else np.nan
                for seed in range(1 if quick else SEEDS):
                    table = clamp(case) if method == "dp-psvi" else case
                    yield Job(table, method, size, seed, parameters, epsilon, label=label)


SMALL_EXPERIMENT = Experiment(
    "logistic-small",
    "Logistic regression, small",
    "phishing: 500 rows, 10 components and an intercept; synth_lr: 500 rows, 2 features and an intercept; 50 held-out "
    f"rows each; prior N(0, I). PSVI with T = {SMALL['iterations']:,} and B = {SMALL['minibatch']}; incremental PSVI "
    "and SparseVI with 100 steps a point.",
    plan_small_work,
)
LARGE_EXPERIMENT = Experiment(
    "logistic-large",
    "Logistic regression, large",
    "Substitutes for the paper's tables. synth100k: 100,000 rows, 50 standard normal features and an intercept. "
    "adult10: census income, 30,162 rows, 10 whitened principal components and an intercept. Prior N(0, I) on raw "
    f"columns. PSVI with T = 500 and B = {LARGE['minibatch']}, SparseVI with B = {LARGE['minibatch']}, "
    "1,000 candidates and 100 steps a row; private methods at their defaults, δ = 1/N. dp-psvi starts anywhere within "
    "the declared bounds, so "
    f"its columns are clamped to ±{NARROW:g}, where the paper's points start; the others see bounds that no value "
    "reaches. Below M = D + 1 points (52 and 12) no method can represent the posterior.",
    plan_large_work,
)
