"""Measures the cost of a query on a table larger than memory.

Run ``make out-of-core``, with ``ROWS=100000000`` for a larger table. An encrypted table of 20 real columns and a binary
target is written in the format of ingestion, and deleted at the end. Each case runs in a new process, after a warm-up
on a small table:

- *read* reads the file's bytes in order;
- *scan* is a plain sequential scan: the Parquet library decrypts and decodes all columns into arrays;
- *lean scan* is the same, but drops pages from the page cache after reading, as the oracle does for a large table;
- *kernel* answers a query on as many rows that are in memory already;
- *oracle* answers the query on the table.

The ratios are oracle over (scan + kernel), and over (lean scan + kernel). All cases use one core, except the oracle,
which reads ahead and uses two if there are two. Before each case the file's pages are dropped from the page cache. Wall
seconds include the effect of other processes; processor seconds do not.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import csv
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from app.inference.core.plan import Mechanism, PlannedQuery, PlanRequest
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.partition import fold
from app.inference.private_zone.queries import BoundedScoreSum, PotentialSum
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_method
from app.privacy.events import GaussianEvent
from benchmarks.sources import TARGET, GeneratedRows, make_facts, make_spec
from workers.enclave.table import StoredTable
from workers.enclave.table_format import Layout, TableKeys
from workers.enclave.table_writer import TableWriter

FEATURES, DRAWS, CLIP = 20, 42, 1.0
BLOCK: Final = 1 << 16
"""Number of rows that are generated once and then repeated."""

READ_BYTES = 1 << 20
KEYS = TableKeys(bytes(32), "benchmark", 1)
QUERIES = ("bounded_score_sum", "potential_sum")
SCANS = {"": "scan", "lean_": "lean scan"}
CLOCKS = ("wall", "processor")
CASES = ("read", *SCANS.values(), *(f"{side} {kind}" for kind in QUERIES for side in ("kernel", "oracle")))
RATIOS = tuple(f"{scanned}{clock}_ratio" for scanned in SCANS for clock in CLOCKS)
FIELDS = ("rows", "case", "wall_seconds", "processor_seconds", "peak_mib", *RATIOS)


def write(path: Path, rows: int) -> None:
    """Write the encrypted table."""
    values = dict(GeneratedRows(BLOCK, FEATURES).gather(np.arange(BLOCK)))
    values[TARGET] = values[TARGET].astype(np.uint8)
    with path.open("wb") as file:
        table = TableWriter(file, KEYS, layout(rows))  # type: ignore[arg-type]
        for start in range(0, rows, BLOCK):
            table.append({name: array[: rows - start] for name, array in values.items()})
        table.finish()
        os.fsync(file.fileno())


def small(path: Path) -> Path:
    """The path of the table of one block, in the same folder as ``path``."""
    return path.with_name("small")


def layout(rows: int) -> Layout:
    """Make the table's layout."""
    return Layout(make_facts(FEATURES, rows).columns, rows)


def make_query(kind: str) -> Query:
    """Make a query of ``kind`` about a random parameter."""
    rng = make_monte_carlo_generator()
    width = FEATURES + 1
    theta = 0.5 * rng.standard_normal(width)
    if kind == "potential_sum":
        deviations = 0.1 * rng.standard_normal((DRAWS // 2, width))
        return PotentialSum(np.concatenate([theta + deviations, theta - deviations]), CLIP, antithetic=True)
    return BoundedScoreSum(theta, np.eye(width), CLIP)


def read(path: Path) -> Callable[[], object]:
    """Read all bytes in order into one buffer; a new buffer for each read would cost more than reading."""
    buffer = bytearray(READ_BYTES)

    def work() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        while os.readv(descriptor, [buffer]):
            pass
        os.close(descriptor)

    return work


def scan(path: Path, *, lean: bool = False) -> Callable[[], object]:
    """Decode all columns to arrays with the Parquet library, group by group."""

    def work() -> None:
        with pq.ParquetFile(path, decryption_properties=KEYS.decryption(), pre_buffer=False) as file:
            for group, batch in enumerate(file.iter_batches(BLOCK, use_threads=False)):
                for column in batch.columns:
                    column.to_numpy()
                if lean:
                    forget(path, file.metadata.row_group(group).column(0).data_page_offset)

    return work


def kernel(kind: str, rows: int) -> Callable[[], object]:
    """Compute the sums over repeated rows in memory, without noise."""
    problem, query = make_problem(make_spec(FEATURES), make_facts(FEATURES, BLOCK)), make_query(kind)
    block, present = fold(problem.model, problem.design, GeneratedRows(BLOCK, FEATURES), range(BLOCK))

    def work() -> None:
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            query.sum(problem.model, block[:count], present[:count], 1)

    return work


def oracle(kind: str, path: Path, rows: int) -> Callable[[], object]:
    """Answer a planned query about all rows of the table, with noise."""
    declared, query = make_facts(FEATURES, rows), make_query(kind)
    request = PlanRequest("dp-psvi", 50, make_spec(FEATURES), {"posterior_draws": DRAWS}, Mechanism(5.0, 1.0, 1))
    planned = (PlannedQuery(kind, query.length, GaussianEvent(5.0)),)
    plan = replace(find_method("dp-psvi").plan(request, declared), queries=planned)
    model = make_problem(make_spec(FEATURES), declared).model

    def work() -> None:
        with StoredTable(path.open("rb"), KEYS, layout(rows)) as table:
            ClippedGaussianOracle(
                model, plan, declared, table, noise=DiscreteGaussian(), sampling=make_sampling_generator()
            ).ask(query)

    return work


def work_of(name: str, path: Path, rows: int) -> Callable[[], object]:
    """Find the function of a case."""
    side, _, kind = name.partition(" ")
    return {
        "read": lambda: read(path),
        "scan": lambda: scan(path),
        "lean": lambda: scan(path, lean=True),
        "kernel": lambda: kernel(kind, rows),
        "oracle": lambda: oracle(kind, path, rows),
    }[side]()


def case(name: str, path: Path, rows: int) -> dict[str, float]:
    """Measure seconds and peak memory of one case in this process."""
    pa.set_cpu_count(1)
    work_of(name, small(path), BLOCK)()  # modules that are loaded on first use do not count
    work = work_of(name, path, rows)
    forget(path)
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return {
        "wall_seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "peak_mib": peak_mib(),
    }


def forget(path: Path, length: int = 0) -> None:
    """Drop the file's first ``length`` bytes from the page cache; 0 drops all."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, length, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def peak_mib() -> float:
    """Read the peak of resident memory (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def fastest(name: str, path: Path, rows: int, repeats: int) -> dict[str, float]:
    """Run a case in several processes; return the least seconds and the largest peak."""
    command = [sys.executable, "-m", "tools.out_of_core", "--rows", str(rows), "--case", name, "--path", str(path)]
    runs = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
        for _ in range(repeats)
    ]
    most = max(run["peak_mib"] for run in runs)
    return {figure: min(run[figure] for run in runs) for figure in runs[0]} | {"peak_mib": most}


def measure(path: Path, rows: int, repeats: int) -> list[dict[str, str | float]]:
    """Measure all cases; return one record for each."""
    figures = {name: fastest(name, path, rows, repeats) for name in CASES}
    for kind, (scanned, bare), clock in product(QUERIES, SCANS.items(), CLOCKS):
        seconds = {name: figures[name][f"{clock}_seconds"] for name in CASES}
        ratio = seconds[f"oracle {kind}"] / (seconds[bare] + seconds[f"kernel {kind}"])
        figures[f"oracle {kind}"][f"{scanned}{clock}_ratio"] = ratio
    return [{"rows": rows, "case": name, **figures[name]} for name in CASES]


def report(records: list[dict[str, str | float]]) -> Table:
    """Format the records as a table."""
    table = Table(title=f"One query about a table, {records[0]['rows']:,} rows x {FEATURES} columns")
    for name in FIELDS[1:]:
        table.add_column(name.replace("_", " "), justify="right")
    for record in records:
        table.add_row(str(record["case"]), *(f"{record[name]:.2f}" if name in record else "" for name in FIELDS[2:]))
    return table


def keep(path: Path, records: list[dict[str, str | float]]) -> None:
    """Replace the records with the same number of rows in a CSV file."""
    others: list[dict[str, str | float]] = []
    if path.exists():
        with path.open(newline="") as stream:
            others = [dict(row) for row in csv.DictReader(stream) if row["rows"] != str(records[0]["rows"])]
    rounded = [
        {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in record.items()}
        for record in records
    ]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *rounded])


def main() -> None:
    """Write a table, measure, print and delete it; as a child process, measure one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--repeats", type=int, default=1, help="processes a case, of which the fastest counts")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--csv", type=Path, help="where to keep the figures")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--path", type=Path)
    arguments = parser.parse_args()
    if arguments.case:
        sys.stdout.write(json.dumps(case(arguments.case, arguments.path, arguments.rows)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the table is deleted
    with tempfile.TemporaryDirectory(dir=arguments.directory, prefix="out-of-core-") as directory:
        path = Path(directory) / "table"
        write(path, arguments.rows)
        write(small(path), BLOCK)
        records = measure(path, arguments.rows, arguments.repeats)
    Console(width=160).print(report(records))
    if arguments.csv:
        keep(arguments.csv, records)


if __name__ == "__main__":
    main()
