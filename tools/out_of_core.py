"""What a query about a table costs that does not fit into memory: ``make out-of-core``, ``ROWS=100000000`` for more.

An encrypted table of 20 real columns and a binary target is written, in the format that ingestion writes, and deleted
at the end. Each case then runs in a process of its own, after a small table that is not counted: *read* reads the
file's bytes in order, *scan* is a plain sequential scan of it (the Parquet library decrypts and decodes all columns
into arrays, and nothing else is done), *lean scan* is the same but lets the system's cache forget what was read, as
the oracle does of a large table, *kernel* answers a query about as many rows that lie in memory already, and
*oracle* answers it about the table. The ratio is oracle over (scan + kernel), and over (lean scan + kernel). All use
one core but the oracle, which reads ahead and so uses two where there are two. Before a case, the file's pages are
dropped from the system's cache. Seconds of the clock count what else the machine does; those of the processor do not.
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
from app.inference.core.problems import problem_for
from app.inference.core.query import Query
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.partition import fold
from app.inference.private_zone.queries import BoundedScoreSum, PotentialSum
from app.inference.private_zone.rng import monte_carlo_generator, sampling_generator
from app.inference.registry import method
from app.privacy.events import GaussianEvent
from benchmarks.sources import TARGET, GeneratedRows, facts, spec
from workers.enclave.table import StoredTable
from workers.enclave.table_format import Layout, TableKeys
from workers.enclave.table_writer import TableWriter

FEATURES, DRAWS, CLIP = 20, 42, 1.0
BLOCK: Final = 1 << 16
"""Rows that are generated once and repeated."""

READ_BYTES = 1 << 20
KEYS = TableKeys(bytes(32), "benchmark", 1)
QUERIES = ("bounded_score_sum", "potential_sum")
SCANS = {"": "scan", "lean_": "lean scan"}
CLOCKS = ("wall", "processor")
CASES = ("read", *SCANS.values(), *(f"{side} {kind}" for kind in QUERIES for side in ("kernel", "oracle")))
RATIOS = tuple(f"{scanned}{clock}_ratio" for scanned in SCANS for clock in CLOCKS)
FIELDS = ("rows", "case", "wall_seconds", "processor_seconds", "peak_mib", *RATIOS)


def write(path: Path, rows: int) -> None:
    """The encrypted table."""
    values = dict(GeneratedRows(BLOCK, FEATURES).gather(np.arange(BLOCK)))
    values[TARGET] = values[TARGET].astype(np.uint8)
    with path.open("wb") as file:
        table = TableWriter(file, KEYS, layout(rows))  # type: ignore[arg-type]
        for start in range(0, rows, BLOCK):
            table.append({name: array[: rows - start] for name, array in values.items()})
        table.finish()
        os.fsync(file.fileno())


def small(path: Path) -> Path:
    """Where a table of one block lies beside the one at ``path``."""
    return path.with_name("small")


def layout(rows: int) -> Layout:
    """Of the table."""
    return Layout(facts(FEATURES, rows).columns, rows)


def make_query(kind: str) -> Query:
    """A query of ``kind`` about a parameter like any other."""
    rng = monte_carlo_generator()
    width = FEATURES + 1
    theta = 0.5 * rng.standard_normal(width)
    if kind == "potential_sum":
        deviations = 0.1 * rng.standard_normal((DRAWS // 2, width))
        return PotentialSum(np.concatenate([theta + deviations, theta - deviations]), CLIP, antithetic=True)
    return BoundedScoreSum(theta, np.eye(width), CLIP)


def read(path: Path) -> Callable[[], object]:
    """All bytes in order into one buffer: a new one for each read would cost more than the reading."""
    buffer = bytearray(READ_BYTES)

    def work() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        while os.readv(descriptor, [buffer]):
            pass
        os.close(descriptor)

    return work


def scan(path: Path, *, lean: bool = False) -> Callable[[], object]:
    """All columns as arrays, one row group after the other, as the Parquet library reads them."""

    def work() -> None:
        with pq.ParquetFile(path, decryption_properties=KEYS.decryption(), pre_buffer=False) as file:
            for group, batch in enumerate(file.iter_batches(BLOCK, use_threads=False)):
                for column in batch.columns:
                    column.to_numpy()
                if lean:
                    forget(path, file.metadata.row_group(group).column(0).data_page_offset)

    return work


def kernel(kind: str, rows: int) -> Callable[[], object]:
    """The sums over rows in memory; the same rows again and again, noise left out."""
    problem, query = problem_for(spec(FEATURES), facts(FEATURES, BLOCK)), make_query(kind)
    block, present = fold(problem.model, problem.design, GeneratedRows(BLOCK, FEATURES), range(BLOCK))

    def work() -> None:
        for start in range(0, rows, BLOCK):
            count = min(BLOCK, rows - start)
            query.sum(problem.model, block[:count], present[:count], 1)

    return work


def oracle(kind: str, path: Path, rows: int) -> Callable[[], object]:
    """A planned query about every row of the table, with its noise."""
    declared, query = facts(FEATURES, rows), make_query(kind)
    request = PlanRequest("dp-psvi", 50, spec(FEATURES), {"posterior_draws": DRAWS}, Mechanism(5.0, 1.0, 1))
    planned = (PlannedQuery(kind, query.length, GaussianEvent(5.0)),)
    plan = replace(method("dp-psvi").plan(request, declared), queries=planned)
    model = problem_for(spec(FEATURES), declared).model

    def work() -> None:
        with StoredTable(path.open("rb"), KEYS, layout(rows)) as table:
            ClippedGaussianOracle(
                model, plan, declared, table, noise=DiscreteGaussian(), sampling=sampling_generator()
            ).ask(query)

    return work


def work_of(name: str, path: Path, rows: int) -> Callable[[], object]:
    """What a case does."""
    side, _, kind = name.partition(" ")
    return {
        "read": lambda: read(path),
        "scan": lambda: scan(path),
        "lean": lambda: scan(path, lean=True),
        "kernel": lambda: kernel(kind, rows),
        "oracle": lambda: oracle(kind, path, rows),
    }[side]()


def case(name: str, path: Path, rows: int) -> dict[str, float]:
    """Seconds and peak memory of one case, in this process."""
    pa.set_cpu_count(1)
    work_of(name, small(path), BLOCK)()  # what is loaded when it is first used is no part of the work
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
    """Drop the file's first ``length`` bytes from the system's cache; 0: all of it."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, length, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def peak_mib() -> float:
    """Most memory that was ever resident: VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def fastest(name: str, path: Path, rows: int, repeats: int) -> dict[str, float]:
    """The smallest figures of several processes."""
    command = [sys.executable, "-m", "tools.out_of_core", "--rows", str(rows), "--case", name, "--path", str(path)]
    runs = [
        json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603
        for _ in range(repeats)
    ]
    most = max(run["peak_mib"] for run in runs)
    return {figure: min(run[figure] for run in runs) for figure in runs[0]} | {"peak_mib": most}


def measure(path: Path, rows: int, repeats: int) -> list[dict[str, str | float]]:
    """One record a case."""
    found = {name: fastest(name, path, rows, repeats) for name in CASES}
    for kind, (scanned, bare), clock in product(QUERIES, SCANS.items(), CLOCKS):
        seconds = {name: found[name][f"{clock}_seconds"] for name in CASES}
        ratio = seconds[f"oracle {kind}"] / (seconds[bare] + seconds[f"kernel {kind}"])
        found[f"oracle {kind}"][f"{scanned}{clock}_ratio"] = ratio
    return [{"rows": rows, "case": name, **found[name]} for name in CASES]


def report(records: list[dict[str, str | float]]) -> Table:
    """The records as a table."""
    table = Table(title=f"One query about a table, {records[0]['rows']:,} rows x {FEATURES} columns")
    for name in FIELDS[1:]:
        table.add_column(name.replace("_", " "), justify="right")
    for record in records:
        table.add_row(str(record["case"]), *(f"{record[name]:.2f}" if name in record else "" for name in FIELDS[2:]))
    return table


def keep(path: Path, records: list[dict[str, str | float]]) -> None:
    """Put ``records`` in place of those of as many rows in a CSV file."""
    kept: list[dict[str, str | float]] = []
    if path.exists():
        with path.open(newline="") as stream:
            kept = [dict(row) for row in csv.DictReader(stream) if row["rows"] != str(records[0]["rows"])]
    rounded = [
        {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in record.items()}
        for record in records
    ]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rounded])


def main() -> None:
    """Write, measure, print and delete; or, as a child, one case as JSON."""
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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the table goes, whoever ends this
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
