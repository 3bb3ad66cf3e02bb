"""How many reservations a second the ledger takes on PostgreSQL, every commit waiting for the disk.

Clients are threads of several processes on one machine with their server. They reserve in rounds; between rounds,
off the clock, what was reserved is given back, as jobs that end do. Every job has a noise of its own, priced before the
clock starts, as the API prices a job before it locks its account.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from app.db import Database, make_engine
from app.db.migrations import upgrade
from app.ledger import Charge, Ledger
from app.privacy.events import GaussianEvent
from app.vault.signing import Signer
from tests.factories.servers import Postgres

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
    cpu_ms: float
    """Of the clients, for each reservation."""


def measure(url: str, case: Case, rounds: int) -> Result:
    """Run one case on the empty database at ``url``."""
    _open_accounts(url, case.accounts)
    context = get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=_client_process, args=(url, case, number, rounds, barrier, results))
        for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    parts = [results.get() for _ in processes]
    for process in processes:
        process.join()
    latencies = np.sort(np.concatenate([np.array(part[0]) for part in parts]))
    seconds = max(part[1] for part in parts)
    cpu = sum(part[2] for part in parts)
    return Result(
        accounts=case.accounts,
        reservations=latencies.size,
        per_second=latencies.size / seconds,
        p50_ms=1e3 * float(np.quantile(latencies, 0.5)),
        p99_ms=1e3 * float(np.quantile(latencies, 0.99)),
        cpu_ms=1e3 * cpu / latencies.size,
    )


def _client_process(url: str, case: Case, number: int, rounds: int, barrier: Barrier, results: Any) -> None:
    """``CLIENTS / PROCESSES`` threads that reserve, round after round."""
    threads = CLIENTS // PROCESSES
    database, ledger = Database(make_engine(url)), _ledger()
    together = threading.Barrier(threads, action=lambda: (barrier.wait(), None)[1])
    clock = _Clock()

    def client(index: int) -> list[float]:
        name = number * threads + index
        return _client(database, ledger, f"ds_{name % case.accounts}", name, rounds, together, clock)

    with ThreadPoolExecutor(threads) as pool:
        latencies = [each for part in pool.map(client, range(threads)) for each in part]
    results.put((latencies, clock.wall, clock.cpu))
    database.dispose()


class _Clock:
    """Wall and processor seconds of this process while its clients reserve."""

    wall = cpu = 0.0

    def start(self) -> None:
        self._from = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter() - self._from[0]
        self.cpu += time.process_time() - self._from[1]


def _client(
    database: Database,
    ledger: Ledger,
    dataset_id: str,
    name: int,
    rounds: int,
    together: threading.Barrier,
    clock: _Clock,
) -> list[float]:
    latencies = []
    for turn in range(rounds + 1):  # the first one is not counted: connections, caches
        charges = [_charge(name, turn, index) for index in range(EACH)]
        with database.read() as session:
            for charge in charges:
                ledger.preview(session, dataset_id, charge)
        if together.wait() == 0:
            clock.start()
        for index, charge in enumerate(charges):
            started = time.perf_counter()
            with database.write() as tx:
                ledger.reserve(tx, dataset_id, f"job_{name}_{turn}_{index}", charge)
            latencies.append(time.perf_counter() - started)
        if together.wait() == 0:
            clock.stop()
        if turn == 0:
            latencies.clear()
            together.wait()
            clock.wall = clock.cpu = 0.0
        for index in range(EACH):
            with database.write() as tx:
                ledger.void(tx, f"job_{name}_{turn}_{index}")
    return latencies


def _charge(name: int, turn: int, index: int) -> Charge:
    return Charge((GaussianEvent(2_000.0 + name + turn / 100 + index / 10_000),), answer_length=10, grid_bits=24)


def _open_accounts(url: str, count: int) -> None:
    database, ledger = Database(make_engine(url)), _ledger()
    upgrade(database.engine)
    for number in range(count):
        with database.write() as tx:
            ledger.open_account(
                tx,
                owner_id="key_bench",
                population=f"people {number}",
                dataset_id=f"ds_{number}",
                unit={"kind": "row"},
                slots=1_000,
                epsilon=4.0,
                delta=1e-6,
            )
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
def _fresh(server: Postgres, name: str) -> Iterator[str]:
    import sqlalchemy as sa

    engine = sa.create_engine(server.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    yield server.url.replace("/postgres", f"/{name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--csv", type=Path)
    chosen = parser.parse_args()
    with Postgres(SERVER) as server:
        durable = fsync_ms(Path(tempfile.gettempdir()))
        print(f"fdatasync of 8 KiB: {durable:.2f} ms (median)")
        for case in CASES:
            with _fresh(server, f"bench_{case.accounts}") as url:
                print(measure(url, case, chosen.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
