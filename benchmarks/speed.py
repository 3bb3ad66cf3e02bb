"""Time and memory of DP-PSVI: ``make bench``.

Each case runs in a separate process on one core, which separates the peaks of memory. Times are of the whole run
(subsampling, gathering, Laplace, gradients, rounding, noise), the median run of five. Generating rows does not count.

- *before*: the time up to the first query;
- *bare*: the run's matrix products only;
- *ratio*: the total divided by *bare*;
- *bound*: the limit of memory on top of the imports, 1.2 * 4 bytes * d * gathered rows + 50 MiB.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from app.inference.core.plan import Mechanism, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_method
from app.inference.runner import run
from benchmarks.processes import measure_peak_mib
from benchmarks.sources import GeneratedRows, NoNoise, Timed, make_facts, make_spec

FEATURES, SIZE, DRAWS, ITERATIONS, BATCH = 50, 100, 100, 500, 2_000
REPEATS = 5
MIB = 2**20


@dataclass(frozen=True)
class Result:
    """Seconds of each part, memory on top of imports, and gathered rows."""

    setup_seconds: float
    iteration_seconds: float
    product_seconds: float
    memory_mib: float
    gathered: int


def measure(slots: int, *, discrete: bool) -> Result:
    """One run at the expected batch, in this process."""
    declared = make_facts(FEATURES, slots)
    mechanism = Mechanism(5.0, BATCH / slots, ITERATIONS)
    request = PlanRequest("dp-psvi", SIZE, make_spec(FEATURES), {"posterior_draws": DRAWS}, mechanism)
    plan = find_method("dp-psvi").plan(request, declared)
    source = Timed(GeneratedRows(slots, FEATURES), time.perf_counter)
    noise = DiscreteGaussian() if discrete else NoNoise()
    _warm_up()
    before = measure_peak_mib()
    start = time.perf_counter()
    oracle = ClippedGaussianOracle(
        make_problem(plan.model, declared).model,
        plan,
        declared,
        source,
        noise=noise,
        sampling=make_sampling_generator(),
    )
    ready = time.perf_counter()
    run(plan, declared, oracle, make_monte_carlo_generator(), lambda _: None)
    done = time.perf_counter()
    memory = measure_peak_mib() - before
    return Result(ready - start - source.seconds, done - ready, measure_products(BATCH), memory, source.gathered)


def _warm_up() -> None:
    """Loads the parts that the libraries load on first use."""
    square = np.eye(FEATURES, dtype=np.float32)
    np.linalg.cholesky(square @ square)
    DiscreteGaussian().perturb(np.zeros(1, dtype=np.int64), 1.0)


def measure_products(batch: int) -> float:
    """Seconds of the bare matrix products of a run: rows by draws in single precision, for the whole batch."""
    rng = np.random.default_rng()
    rows = rng.standard_normal((batch, FEATURES + 1)).astype(np.float32)
    draws = rng.standard_normal((FEATURES + 1, DRAWS)).astype(np.float32)
    out = rows @ draws
    start = time.perf_counter()
    for _ in range(ITERATIONS):
        np.matmul(rows, draws, out=out)
    return time.perf_counter() - start


def _child(slots: int, *, discrete: bool) -> Result:
    command = [sys.executable, "-m", "benchmarks.speed", "--slots", str(slots), *(["--discrete"] if discrete else [])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    results = [
        Result(**json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout))
        for _ in range(REPEATS)
    ]
    return sorted(results, key=lambda result: result.iteration_seconds)[REPEATS // 2]


def _report() -> None:
    console = Console(width=110)
    case = f"{FEATURES} features, M={SIZE}, S={DRAWS}, T={ITERATIONS}, batch {BATCH}"
    table = Table(title=f"DP-PSVI, {case}: seconds, median run of {REPEATS}")
    for name in ("slots", "noise", "before", "iterations", "total", "bare", "ratio", "MiB", "bound"):
        table.add_column(name, justify="right")
    results = {}
    for slots, discrete in ((100_000, False), (100_000, True), (1_000_000, False), (100_000_000, False)):
        result = results[slots, discrete] = _child(slots, discrete=discrete)
        table.add_row(f"{slots:,}", "discrete" if discrete else "none", *_cells(result))
    console.print(table)
    ratio = results[100_000_000, False].iteration_seconds / results[1_000_000, False].iteration_seconds
    console.print(f"iterations at 100,000,000 slots over those at 1,000,000: {ratio:.2f}")


def _cells(result: Result) -> Iterator[str]:
    total = result.setup_seconds + result.iteration_seconds
    bound = 1.2 * 4 * FEATURES * result.gathered / MIB + 50
    for seconds in (result.setup_seconds, result.iteration_seconds, total, result.product_seconds):
        yield f"{seconds:.2f}"
    yield f"{total / result.product_seconds:.1f}"
    yield from (f"{result.memory_mib:.0f}", f"{bound:.0f}")


def main() -> None:
    """Prints the table, or, in a child process, one case as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int)
    parser.add_argument("--discrete", action="store_true")
    arguments = parser.parse_args()
    if arguments.slots is None:
        _report()
    else:
        print(json.dumps(asdict(measure(arguments.slots, discrete=arguments.discrete))))


if __name__ == "__main__":
    main()
