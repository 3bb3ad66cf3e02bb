"""Logistic regression, small and large (Bayesian Pseudocoresets, 2020, Fig. 3 and 6)."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.experiment import Experiment
from benchmarks.experiments.paper_tables import NARROW, clamp, list_large, list_small, make_large, make_small
from benchmarks.records import Record
from benchmarks.runs import Job

SMALL_SEEDS, LARGE_SEEDS = 5, 5
SMALL_SIZES, LARGE_SIZES = (2, 5, 10, 20, 50, 100), (10, 20, 50, 100, 200)
SMALL = {"iterations": 1_500, "minibatch": 400, "learning_rate": 0.1}
LARGE = {"iterations": 500, "minibatch": 200, "learning_rate": 1.0}
PUBLISHED, TO_THE_LETTER = {"steps": "published"}, {"steps": "gradient"}
SMALL_METHODS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("psvi", {}, "PSVI"),
    ("psvi", SMALL | PUBLISHED, "PSVI, published steps"),
    ("psvi", SMALL | TO_THE_LETTER, "PSVI, Algorithm 1"),
    ("sparse-vi", {}, "SparseVI"),
    ("giga", {"weighting": "optimal"}, "GIGA, optimal"),
    ("frank-wolfe", {"weighting": "optimal"}, "Frank–Wolfe, optimal"),
    ("omp", {"weighting": "optimal"}, "OMP, optimal"),
    ("uniform", {}, "uniform"),
)
LARGE_METHODS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("psvi", {}, "PSVI"),
    ("psvi", LARGE | PUBLISHED, "PSVI, published steps"),
    ("psvi", LARGE | TO_THE_LETTER, "PSVI, Algorithm 1"),
    ("sparse-vi", {}, "SparseVI"),
    ("giga", {"weighting": "optimal"}, "GIGA, optimal"),
    ("giga", {"weighting": "realistic"}, "GIGA, realistic"),
    ("uniform", {}, "uniform"),
    ("dp-psvi", {}, "dp-psvi, clamped, ε = 0.2"),
    ("dp-psvi-surrogate", {}, "dp-psvi-surrogate, ε = 0.2"),
)


def plan_small_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every size."""
    for case in map(make_small, list_small()):
        for size in (2, 10) if quick else SMALL_SIZES:
            for method, parameters, label in SMALL_METHODS:
                for seed in range(2 if quick else SMALL_SEEDS):
                    yield Job(case, method, size, seed, parameters, label=label)


def plan_large_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every size, private ones at one epsilon."""
    for case in map(make_large, list_large()[quick:]):
        for size in (20,) if quick else LARGE_SIZES:
            for method, parameters, label in LARGE_METHODS:
                epsilon = 0.2 if method.startswith("dp-") else np.nan
                for seed in range(1 if quick else LARGE_SEEDS):
                    table = clamp(case) if method == "dp-psvi" else case
                    yield Job(table, method, size, seed, parameters, epsilon, label=label)


SMALL_EXPERIMENT = Experiment(
    "logistic-small",
    "Logistic regression, small",
    "phishing: 500 rows, 10 components and an intercept; synth_lr: 500 rows, 2 features and an intercept; election: "
    "500 voters of 1996 (statsmodels), 10 whitened components and an intercept; 50 held-out rows each; prior N(0, I). "
    f"PSVI with its defaults. *Published steps*: T = {SMALL['iterations']:,}, B = {SMALL['minibatch']}, Adam's steps "
    f"α/t with α = {SMALL['learning_rate']:g}, weights from N/M, as in the program of the paper. *Algorithm 1*: the "
    "same along the gradient itself. SparseVI with 100 steps for each point.",
    plan_small_work,
)
LARGE_EXPERIMENT = Experiment(
    "logistic-large",
    "Logistic regression, large",
    "Tables that replace the tables of the paper. synth100k: 100,000 rows, 50 standard normal features and an "
    "intercept. adult10: census income, 30,162 rows, 10 whitened principal components and an intercept. insurance9, "
    "without the files of the census: any visit to a doctor (statsmodels), 18,171 rows, 9 whitened components. Prior "
    "N(0, I) on raw columns. PSVI with its defaults. *Published steps* and *Algorithm 1*: "
    f"T = {LARGE['iterations']}, B = {LARGE['minibatch']} and α = {LARGE['learning_rate']:g}. SparseVI has "
    "B = 1,000, 1,000 candidates and 100 steps for each chosen row. Private methods have their defaults, δ = 1/N. "
    "dp-psvi starts at random points within the declared bounds. So its columns are clamped to "
    f"±{NARROW:g}, where the points of the paper start. For the other methods, the bounds are so wide that no value is "
    "clamped. With fewer than D + 1 points (52 and 12) no method can represent the posterior.",
    plan_large_work,
)
