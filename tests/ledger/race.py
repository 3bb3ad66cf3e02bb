"""Many clients race for one budget: exactly one wins each time.

Each race is 24 threads on a separate SQLite file; each thread reserves epsilon 0.3 of a limit of 0.4. Clients mostly
wait for the lock of the file, so several races run in parallel. Exits non-zero if a race ends otherwise.
"""

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from app.db import Database, make_engine
from app.db.migrations import upgrade
from app.errors import BudgetExceeded
from app.ledger import Budget, Charge, Ledger
from app.vault.signing import Signer
from tests.ledger.support import Bench, commitment, costing

RACES, CLIENTS, PROCESSES, SIDE_BY_SIDE = 1_000, 24, 2, 6
LIMIT, WANTED = 0.4, 0.3
DATASET = "ds_race"


class Lost(Exception):
    """A race did not end with exactly one winner and the right balance."""


def prepare(path: Path) -> None:
    """Create a migrated database with one account."""
    with _database(path) as database:
        upgrade(database.engine)
        Bench(database, _ledger()).open_account(DATASET, epsilon=LIMIT)


def race(path: Path, charge: Charge) -> None:
    """Run one race on the database at ``path``.

    Raises:
        Lost: the number of winners in clients or ledger is not one.
    """
    barrier = threading.Barrier(CLIENTS)
    with _database(path) as database, ThreadPoolExecutor(CLIENTS) as clients:
        wins = list(clients.map(lambda index: _client(database, barrier, f"job_{index}", charge), range(CLIENTS)))
        with database.read() as session:
            budget, broken = _ledger().budget(session, DATASET), _ledger().verify(session)
    if sum(wins) != 1 or broken or not _right(budget):
        raise Lost(f"{sum(wins)} of {CLIENTS} won; {budget}")


def _client(database: Database, barrier: threading.Barrier, job_id: str, charge: Charge) -> bool:
    barrier.wait()
    try:
        with database.write() as tx:
            _ledger().reserve(tx, DATASET, job_id, charge, commitment=commitment())
    except BudgetExceeded:
        with database.write() as tx:
            _ledger().record_refusal(tx, DATASET)
        return False
    return True


def _right(budget: Budget) -> bool:
    counts = (budget.jobs.settled, budget.jobs.reserved, budget.jobs.refused)
    total = budget.spent.epsilon + budget.reserved.epsilon
    charged = abs(total - WANTED) < 1e-6 and budget.spent.epsilon == 0
    return counts == (0, 1, CLIENTS - 1) and charged and budget.version == 2


def _races(template: Path, count: int) -> int:
    charge = costing(WANTED)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as lanes:
        return sum(lanes.map(lambda _: _race_on_copy(template, charge), range(count)))


def _race_on_copy(template: Path, charge: Charge) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(template, folder))
        race(path, charge)
    return True


def _ledger() -> Ledger:
    return Ledger(Signer(bytes(32)), max_epsilon=1.0)


@contextmanager
def _database(path: Path) -> Iterator[Database]:
    database = Database(make_engine(f"sqlite:///{path}"))
    yield database
    database.dispose()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--races", type=int, default=RACES)
    races = parser.parse_args().races
    shares = [races // PROCESSES + (index < races % PROCESSES) for index in range(PROCESSES)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        template = Path(folder) / "template.sqlite3"
        prepare(template)
        try:
            held = sum(pool.map(_races, [template] * PROCESSES, shares))
        except Lost as lost:
            print(f"race lost: {lost}")
            return 1
    seconds = time.monotonic() - started
    print(f"{held} races of {CLIENTS} clients: exactly one winner each, every balance right ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
