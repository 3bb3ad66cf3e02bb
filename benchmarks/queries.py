"""Time of one query on a whole table, on one core: ``make bench``.

Each query is compared with a bare matrix product of its shape: rows by draws in single precision, or rows by rows in
double precision for matrices. Rounding to the grid is included, noise is not. Times are processor time, the fastest of
several runs. Other processes do not count, but they slow down caches and memory.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from app.inference.core.model import Array32, Model
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.private_zone.queries import (
    BoundedScoreSum,
    ClippedScoreSum,
    InformationSum,
    MomentSum,
    PotentialSum,
)
from benchmarks.sources import make_facts, make_spec

ROWS, WIDTH, DRAWS, REPEATS = 100_000, 51, 102, 9


def measure_fastest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of ``repeats`` calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def measure_product(rows: Array32, query: Query) -> float:
    """Seconds of the bare matrix product that a query needs at least."""
    if isinstance(query, InformationSum):
        exact = rows.astype(np.float64)
        return measure_fastest(lambda: exact.T @ exact, REPEATS)
    side = np.ones((rows.shape[1], query.length), dtype=np.float32)
    out = np.empty((len(rows), query.length), dtype=np.float32)
    return measure_fastest(lambda: np.matmul(rows, side, out=out), REPEATS)


def generate(rng: np.random.Generator) -> tuple[Model, Array32, NDArray[np.bool_]]:
    """A logistic regression, its folded rows, and their presence."""
    x = rng.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
    x[:, -1] = 1
    rows = x * rng.choice([-1, 1], (ROWS, 1)).astype(np.float32)
    return make_problem(make_spec(WIDTH - 1), make_facts(WIDTH - 1, ROWS)).model, rows, np.ones(ROWS, dtype=bool)


def make_potentials(rng: np.random.Generator) -> PotentialSum:
    """A query of DP-PSVI."""
    theta, deviations = 0.5 * rng.standard_normal(WIDTH), 0.1 * rng.standard_normal((DRAWS // 2, WIDTH))
    return PotentialSum(np.concatenate([theta + deviations, theta - deviations]), 1.0, antithetic=True)


def measure_queries() -> Table:
    """The table of times, with a line for each kind of query."""
    rng = np.random.default_rng(0)
    model, rows, present = generate(rng)
    theta, transform = 0.5 * rng.standard_normal(WIDTH), np.eye(WIDTH)
    table = Table(title=f"One query, {ROWS:,} rows x {WIDTH} columns: milliseconds")
    for name in ("kind", "values", "query", "product", "ratio"):
        table.add_column(name, justify="right")
    for query in (
        make_potentials(rng),
        BoundedScoreSum(theta, transform, 1.0),
        ClippedScoreSum(theta, transform, 1.0),
        InformationSum(theta, transform, 1.0),
        MomentSum(1.0, WIDTH, intercept=True, clip=5.0),
    ):
        seconds = measure_fastest(lambda query=query: query.sum(model, rows, present, 1), REPEATS)  # type: ignore[misc]
        bare = measure_product(rows, query)
        values = (query.kind, str(query.length), f"{1e3 * seconds:.1f}", f"{1e3 * bare:.1f}", f"{seconds / bare:.1f}")
        table.add_row(*values)
    return table


if __name__ == "__main__":
    Console(width=100).print(measure_queries())
