"""How long one core takes over a question about a whole table, and over runs of DP-PSVI: ``make bench``.

Each question's seconds stand beside those of a bare matrix product of its shape: rows by draws in single precision,
rows by rows in double for matrices. Rounding to the grid is included, noise is not. Fastest of several, in processor
time: what other processes take does not count, though they slow down caches and memory.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from app.inference.oracle import ClippedGaussianOracle
from app.inference.problems import model_for
from app.inference.protocol import Array32, Mechanism, PlanRequest, Question
from app.inference.questions import BoundedScoreSum, ClippedScoreSum, InformationSum, MomentSum, PotentialSum
from app.inference.registry import method
from app.inference.rng import monte_carlo_generator, sampling_generator
from app.inference.runner import run
from benchmarks.sources import GeneratedRows, NoNoise, facts, spec

ROWS, WIDTH, DRAWS, REPEATS = 100_000, 51, 102, 9
SIZE, ITERATIONS, RUN_DRAWS, RUNS = 100, 500, 100, 5


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of ``repeats``."""
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def product(rows: Array32, question: Question) -> float:
    """Seconds of the bare product that a question cannot do without."""
    if isinstance(question, InformationSum):
        exact = rows.astype(np.float64)
        return fastest(lambda: exact.T @ exact, REPEATS)
    side = np.ones((rows.shape[1], question.length), dtype=np.float32)
    out = np.empty((len(rows), question.length), dtype=np.float32)
    return fastest(lambda: np.matmul(rows, side, out=out), REPEATS)


def questions() -> Table:
    """Every kind over all rows."""
    rng = np.random.default_rng(0)
    model = model_for(spec(WIDTH - 1), facts(WIDTH - 1, ROWS)).model
    x = rng.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
    x[:, -1] = 1
    rows, present = x * rng.choice([-1, 1], (ROWS, 1)).astype(np.float32), np.ones(ROWS, dtype=bool)
    theta, transform = 0.5 * rng.standard_normal(WIDTH), np.eye(WIDTH)
    deviations = 0.1 * rng.standard_normal((DRAWS // 2, WIDTH))
    table = Table(title=f"One question, {ROWS:,} rows x {WIDTH} columns: milliseconds")
    for name in ("kind", "values", "question", "product", "ratio"):
        table.add_column(name, justify="right")
    for question in (
        PotentialSum(np.concatenate([theta + deviations, theta - deviations]), 1.0, antithetic=True),
        BoundedScoreSum(theta, transform, 1.0),
        ClippedScoreSum(theta, transform, 1.0),
        InformationSum(theta, transform, 1.0),
        MomentSum(1.0, WIDTH, intercept=True, clip=5.0),
    ):
        asked = fastest(lambda question=question: question.sum(model, rows, present, 1), REPEATS)  # type: ignore[misc]
        bare = product(rows, question)
        values = (question.kind, str(question.length), f"{1e3 * asked:.1f}", f"{1e3 * bare:.1f}", f"{asked / bare:.1f}")
        table.add_row(*values)
    return table


def runs() -> Table:
    """DP-PSVI from the first row gathered to the release."""
    table = Table(title=f"DP-PSVI, {ROWS:,} rows, M={SIZE}, S={RUN_DRAWS}, T={ITERATIONS}, D={WIDTH}: seconds")
    for name in ("batch", "before", "iterations", "total"):
        table.add_column(name, justify="right")
    for batch in (200, 2_000):
        before, total = min((one_run(batch) for _ in range(RUNS)), key=lambda each: each[1])
        table.add_row(f"{batch:,}", f"{before:.2f}", f"{total - before:.2f}", f"{total:.2f}")
    return table


def one_run(batch: int) -> tuple[float, float]:
    """Seconds until the rows are held, and in all; generating them included."""
    declared = facts(WIDTH - 1, ROWS)
    mechanism = Mechanism(5.0, batch / ROWS, ITERATIONS)
    plan = method("dp-psvi").plan(
        PlanRequest("dp-psvi", SIZE, spec(WIDTH - 1), {"posterior_draws": RUN_DRAWS}, mechanism), declared
    )
    model, source = model_for(plan.model, declared).model, GeneratedRows(ROWS, WIDTH - 1)
    start = time.process_time()
    oracle = ClippedGaussianOracle(model, plan, declared, source, noise=NoNoise(), sampling=sampling_generator())
    ready = time.process_time()
    run(plan, declared, oracle, monte_carlo_generator(), lambda _: None)
    return ready - start, time.process_time() - start


def main() -> None:
    """Print both tables."""
    console = Console(width=100)
    console.print(questions())
    console.print(runs())


if __name__ == "__main__":
    main()
