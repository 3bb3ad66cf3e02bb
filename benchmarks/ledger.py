"""Reservations a second on PostgreSQL with synchronous commits.

Clients are threads of several processes, on one machine with the server. They reserve in rounds. Between rounds, which
are not timed, they void their reservations. Every job has a different noise and is priced before the clock starts, as
the API prices a job before it locks its account.
"""

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.db import Database, make_engine
from app.db.migrations import upgrade
from benchmarks.environment import describe_environment
from benchmarks.reservations import CLIENTS, PROCESSES, Crew, make_ledger, reserve
from support.servers import Postgres

ROUNDS = 12
SERVER = ("max_connections=100", "synchronous_commit=on", "fsync=on", "shared_buffers=128MB")
FSYNCS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """The number of accounts, and the target rate."""

    accounts: int
    target_per_second: float


CASES = (Case(1, 400.0), Case(32, 1_200.0))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case; time between rounds is not counted."""

    accounts: int
    reservations: int
    per_second: float
    p50_ms: float
    p99_ms: float
    client_cpu_ms: float
    """Per reservation, without the server's time."""


def measure(url: str, case: Case, rounds: int) -> Result:
    """Run one case on the empty database at ``url``."""
    _open_accounts(url, case.accounts)
    context = get_context("spawn")
    turns, results = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=reserve, args=(Crew(url, case.accounts, number, rounds), turns, results))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    parts = [results.get() for _ in processes]
    for process in processes:
        process.join()
    latencies = np.sort(np.concatenate([np.array(part.latencies) for part in parts]))
    return Result(
        accounts=case.accounts,
        reservations=latencies.size,
        per_second=latencies.size / max(part.wall for part in parts),
        p50_ms=1e3 * float(np.quantile(latencies, 0.5)),
        p99_ms=1e3 * float(np.quantile(latencies, 0.99)),
        client_cpu_ms=1e3 * sum(part.cpu for part in parts) / latencies.size,
    )


def _open_accounts(url: str, count: int) -> None:
    database = Database(make_engine(url))
    upgrade(database.engine)
    ledger = make_ledger()
    with database.write() as tx:
        for number in range(count):
            ledger.open_account(
                tx,
                owner_id="key_o",
                population=f"people {number}",
                dataset_id=f"ds_{number}",
                unit={"kind": "row"},
                slots=1_000,
                facts="f" * 64,
                epsilon=4.0,
                delta=1e-6,
            )
    database.dispose()


def measure_fsync_ms(folder: Path) -> float:
    """Median time of making 8 KiB durable on the disk of ``folder``."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        times = []
        for _ in range(FSYNCS):
            file.seek(0)
            file.write(os.urandom(8_192))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return 1e3 * float(np.median(times))


@contextmanager
def create_database(server: Postgres, name: str) -> Iterator[str]:
    """Create a database and yield its URL."""
    engine = sa.create_engine(server.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    yield server.url.replace("/postgres", f"/{name}")


def show(results: Sequence[Result], durable_ms: float, console: Console) -> None:
    """Print the results as a table, with the disk's speed and the load."""
    table = Table(
        title=f"ledger.reserve on PostgreSQL, synchronous_commit=on, {CLIENTS} clients, {os.cpu_count()} cores"
    )
    for name in ("accounts", "reservations", "per second", "target", "p50 ms", "p99 ms", "client CPU ms"):
        table.add_column(name, justify="right")
    for case, result in zip(CASES, results, strict=True):
        figures = (result.p50_ms, result.p99_ms, result.client_cpu_ms)
        counts = (str(result.accounts), str(result.reservations))
        rates = (f"{result.per_second:.0f}", f"{case.target_per_second:.0f}")
        table.add_row(*counts, *rates, *(f"{figure:.1f}" for figure in figures))
    console.print(table)
    console.print(f"fdatasync of 8 KiB on this disk: {durable_ms:.2f} ms (median); load {os.getloadavg()[0]:.1f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--csv", type=Path)
    chosen = parser.parse_args()
    with Postgres(SERVER) as server:
        durable_ms, results = measure_fsync_ms(server.folder), []
        for case in CASES:
            with create_database(server, f"bench_{case.accounts}") as url:
                results.append(measure(url, case, chosen.rounds))
    show(results, durable_ms, Console())
    if chosen.csv:
        write_csv(chosen.csv, results, durable_ms)
    return 0


def write_csv(path: Path, results: Sequence[Result], durable_ms: float) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*asdict(results[0]), "clients", "fdatasync_ms", "load", *describe_environment()])
        for result in results:
            plain = [f"{value:.2f}" if isinstance(value, float) else value for value in asdict(result).values()]
            rows.writerow(
                [*plain, CLIENTS, f"{durable_ms:.2f}", f"{os.getloadavg()[0]:.1f}", *describe_environment().values()]
            )


if __name__ == "__main__":
    sys.exit(main())
