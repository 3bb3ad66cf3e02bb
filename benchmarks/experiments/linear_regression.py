"""Linear regression on 100 features (Bayesian Pseudocoresets, 2020, Fig. 2c)."""

from collections.abc import Iterator

import numpy as np

from benchmarks.cases import Case, make_linear_regression
from benchmarks.designs import Rows
from benchmarks.experiment import Experiment
from benchmarks.experiments.gaussian_mean import METHODS
from benchmarks.records import Record
from benchmarks.runs import Job

ROWS, FEATURES, SEEDS = 2_000, 100, 10
ITERATIONS = 1_000
SIZES = (25, 50, 100, 150, 200, 250)


def make_table(seed: int, features: int) -> Case:
    """A table with new rows and new true coefficients."""
    rng = np.random.default_rng((seed, features))
    truth = rng.standard_normal(features + 1)

    def draw(n: int) -> Rows:
        x = rng.standard_normal((n, features))
        return Rows(x, x @ truth[:-1] + truth[-1] + rng.standard_normal(n))

    return make_linear_regression(f"{features} features", draw(ROWS), draw(ROWS))


def plan_work(quick: bool) -> Iterator[Job | Record]:
    """Yields every method at every size."""
    for seed in range(2 if quick else SEEDS):
        case = make_table(seed, 10 if quick else FEATURES)
        for size in (5, 12) if quick else SIZES:
            for method, parameters, label in METHODS:
                changes = {"iterations": ITERATIONS} if method == "psvi" else {}
                yield Job(case, method, size, seed, {**parameters, **changes}, label=label)


EXPERIMENT = Experiment(
    "linear-regression",
    "Linear regression",
    f"N = {ROWS:,} rows of {FEATURES} standard normal features and an intercept, D = {FEATURES + 1}, truth N(0, I), "
    "new for each seed. The noise variance is the variance of the targets, and the prior variance their second "
    f"moment, as in the paper; the prior's mean is zero. PSVI with T = {ITERATIONS:,}.",
    plan_work,
)
