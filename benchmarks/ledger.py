"""How many reservations a second the ledger takes on PostgreSQL, every commit waiting for the disk.

Clients are threads of several processes on one machine with their server. They reserve in rounds; between rounds,
off the clock, what was reserved is given back, as jobs that end do. Every job has a noise of its own, priced before the
clock starts, as the API prices a job before it locks its account.
"""

import argparse
import csv
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from app.db import Database, Together, WriteSession, make_engine
from app.db.migrations import upgrade
from app.ledger import Charge, Ledger
from app.privacy.events import GaussianEvent
from app.vault.signing import Signer
from benchmarks.environment import environment
from tests.factories.servers import Postgres
from tests.ledger.support import Bench

CLIENTS, PROCESSES, ROUNDS, EACH = 32, 2, 12, 8
SERVER = ("max_connections=100", "synchronous_commit=on", "fsync=on", "shared_buffers=128MB")
FSYNCS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """So many clients on so many accounts."""

    accounts: int
    target_per_second: float


CASES = (Case(1, 400.0), Case(32, 1_200.0))


@dataclass(frozen=True, slots=True)
class Result:
    """Of one case: the clock stood still between rounds."""

    accounts: int
    reservations: int
    per_second: float
    p50_ms: float
    p99_ms: float
    client_cpu_ms: float
    """For each reservation; the server's comes on top."""


def measure(url: str, case: Case, rounds: int) -> Result:
    """Run one case on the empty database at ``url``."""
    _open_accounts(url, case.accounts)
    context = get_context("spawn")
    turns, results = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=_reserve, args=(Crew(url, case.accounts, number, rounds), turns, results))
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


@dataclass(frozen=True, slots=True)
class Crew:
    """The clients of one process."""

    url: str
    accounts: int
    number: int
    rounds: int


@dataclass(slots=True)
class Clock:
    """Wall and processor seconds of a process while its clients reserve, and how long each call took."""

    wall: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def start(self) -> None:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


def _reserve(crew: Crew, turns: Barrier, results: Any) -> None:
    """``CLIENTS / PROCESSES`` threads that reserve, round after round; the first round warms up."""
    threads = CLIENTS // PROCESSES
    names = [crew.number * threads + index for index in range(threads)]
    database, ledger, clock = Database(make_engine(crew.url, connections=threads)), _ledger(), Clock()
    with ThreadPoolExecutor(threads) as pool:
        together = Together(database, ledger.lock_all)
        clients = [Client(database, together, ledger, f"ds_{name % crew.accounts}", name) for name in names]
        for turn in range(crew.rounds + 1):
            list(pool.map(lambda client, turn=turn: client.price(turn), clients))
            turns.wait()
            clock.start()
            taken = list(pool.map(lambda client, turn=turn: client.reserve(turn), clients))
            turns.wait()
            clock.stop()
            clock.latencies += [each for part in taken for each in part]
            list(pool.map(lambda client, turn=turn: client.give_back(turn), clients))
            if turn == 0:
                clock = Clock()
    results.put(clock)
    database.dispose()


@dataclass(frozen=True, slots=True)
class Client:
    """Reserves ``EACH`` jobs a round, one after the other, each with a noise of its own."""

    database: Database
    together: Together
    ledger: Ledger
    dataset_id: str
    name: int

    def price(self, turn: int) -> None:
        with self.database.read() as session:
            for index in range(EACH):
                self.ledger.preview(session, self.dataset_id, _charge(self.name, turn, index))

    def reserve(self, turn: int) -> list[float]:
        taken = []
        for index in range(EACH):
            charge = _charge(self.name, turn, index)
            started = time.perf_counter()
            reserve = partial(self._reserve, job_id=self._job(turn, index), charge=charge)
            self.together.transact(reserve, self.dataset_id)
            taken.append(time.perf_counter() - started)
        return taken

    def _reserve(self, tx: WriteSession, *, job_id: str, charge: Charge) -> None:
        self.ledger.reserve(tx, self.dataset_id, job_id, charge)

    def give_back(self, turn: int) -> None:
        for index in range(EACH):
            with self.database.write() as tx:
                self.ledger.void(tx, self._job(turn, index))

    def _job(self, turn: int, index: int) -> str:
        return f"job_{self.name}_{turn}_{index}"


def _charge(name: int, turn: int, index: int) -> Charge:
    return Charge((GaussianEvent(2_000.0 + name + turn / 100 + index / 10_000),), answer_length=10, grid_bits=24)


def _open_accounts(url: str, count: int) -> None:
    database = Database(make_engine(url))
    upgrade(database.engine)
    bench = Bench(database, _ledger())
    for number in range(count):
        bench.open_account(f"ds_{number}", population=f"people {number}", epsilon=4.0)
    database.dispose()


def _ledger() -> Ledger:
    return Ledger(Signer(bytes(32)), max_epsilon=20.0)


def fsync_ms(folder: Path) -> float:
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
def fresh(server: Postgres, name: str) -> Iterator[str]:
    """The URL of a new database."""
    engine = sa.create_engine(server.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    yield server.url.replace("/postgres", f"/{name}")


def show(results: Sequence[Result], durable_ms: float, console: Console) -> None:
    """A table, and what it was measured on."""
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
        durable_ms, results = fsync_ms(server.folder), []
        for case in CASES:
            with fresh(server, f"bench_{case.accounts}") as url:
                results.append(measure(url, case, chosen.rounds))
    show(results, durable_ms, Console())
    if chosen.csv:
        write_csv(chosen.csv, results, durable_ms)
    return 0


def write_csv(path: Path, results: Sequence[Result], durable_ms: float) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*asdict(results[0]), "clients", "fdatasync_ms", "load", *environment()])
        for result in results:
            plain = [f"{value:.2f}" if isinstance(value, float) else value for value in asdict(result).values()]
            rows.writerow([*plain, CLIENTS, f"{durable_ms:.2f}", f"{os.getloadavg()[0]:.1f}", *environment().values()])


if __name__ == "__main__":
    sys.exit(main())
