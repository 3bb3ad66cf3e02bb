"""Clients in several processes ask for more than the budget, on PostgreSQL.

Clients reserve jobs of several sizes on a few accounts, and void some of them, so that they compete to the end. Half of
the calls use group commit, as the API does; the other half runs alone. Afterwards dp-accounting prices the jobs that
the clients hold, and the result is compared with each account. Run as a module for a million attempts on a separate
server; exits non-zero if an account is overspent or differs.
"""

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

from app.db import Database, GroupCommit, WriteSession, make_engine
from app.db.migrations import upgrade
from app.errors import BudgetExceeded
from app.ledger import Ledger
from app.vault.signing import Signer
from support.servers import Postgres
from tests.ledger import naive
from tests.ledger.support import DELTA, Bench, commitment, costing

ATTEMPTS, PROCESSES, THREADS, ACCOUNTS = 1_000_000, 2, 8, 8
LIMIT, SIZES, GIVEN_BACK = 1.0, (0.1, 0.2, 0.3, 0.5), 0.1


class Overspent(Exception):
    """An account holds more than its limit, or does not add up."""


@dataclass
class Held:
    """The jobs of one process's clients: the number of each size that an account admitted."""

    attempts: int = 0
    kept: defaultdict[str, Counter[float]] = field(default_factory=lambda: defaultdict(Counter))
    entries: Counter[str] = field(default_factory=Counter)


def stampede(url: str, attempts: int) -> int:
    """Race for the accounts of the migrated database at ``url``; return the number of admissions.

    Raises:
        Overspent: an account is overspent or differs.
    """
    with _database(url) as database:
        for number in range(ACCOUNTS):
            Bench(database, _LEDGER).open_account(f"ds_{number}", population=f"race {number}", epsilon=LIMIT)
    with get_context("spawn").Pool(PROCESSES) as pool:
        shares = [(url, attempts // PROCESSES, number) for number in range(PROCESSES)]
        held = pool.starmap(_process, shares)
    with _database(url) as database:
        return sum(check(database, _LEDGER, f"ds_{number}", held) for number in range(ACCOUNTS))


def _process(url: str, attempts: int, number: int) -> Held:
    held = Held()
    with _database(url) as database, ThreadPoolExecutor(THREADS) as pool:
        each, joined = attempts // THREADS, GroupCommit(database, _LEDGER.lock_all)
        for part in pool.map(lambda thread: _client(database, joined, f"{number}_{thread}", each), range(THREADS)):
            held.attempts += part.attempts
            held.entries += part.entries
            for dataset_id, kept in part.kept.items():
                held.kept[dataset_id] += kept
    return held


def _client(database: Database, joined: GroupCommit, name: str, attempts: int) -> Held:
    held, ledger, chance = Held(), _LEDGER, random.Random(name)
    for index in range(attempts):
        dataset_id, size = f"ds_{chance.randrange(ACCOUNTS)}", chance.choice(SIZES)
        job_id = f"job_{name}_{index}"
        held.attempts += 1
        transact = chance.choice((partial(joined.transact, name=dataset_id), database.transact))
        try:
            transact(partial(_reserve, dataset_id=dataset_id, job_id=job_id, size=size))
        except BudgetExceeded:
            continue
        held.entries[dataset_id] += 1
        if chance.random() < GIVEN_BACK:
            with database.write() as tx:
                ledger.void(tx, job_id)
            held.entries[dataset_id] += 1
        else:
            held.kept[dataset_id][size] += 1
    return held


def _reserve(tx: WriteSession, *, dataset_id: str, job_id: str, size: float) -> None:
    _LEDGER.reserve(tx, dataset_id, job_id, costing(size), commitment=commitment())


def check(database: Database, ledger: Ledger, dataset_id: str, held: list[Held]) -> int:
    """The number of jobs that the account holds.

    Raises:
        Overspent: they cost more than the limit together, or differ from the clients' jobs.
    """
    kept: Counter[float] = sum((part.kept[dataset_id] for part in held), Counter())
    charges = [costing(size) for size, count in kept.items() for _ in range(count)]
    with database.read() as session:
        budget, broken = ledger.budget(session, dataset_id), ledger.verify(session)
    entries = 1 + sum(part.entries[dataset_id] for part in held)
    priced = naive.epsilon(charges, DELTA)
    sound = not broken and (budget.version, budget.jobs.reserved) == (entries, len(charges))
    if priced > LIMIT or not sound or abs(budget.reserved.epsilon - priced) > 1e-6:
        raise Overspent(f"{len(charges)} jobs of {priced} together; {budget}")
    return len(charges)


_LEDGER = Ledger(Signer(bytes(32)), max_epsilon=LIMIT)


@contextmanager
def _database(url: str) -> Iterator[Database]:
    database = Database(make_engine(url, connections=THREADS))
    try:
        yield database
    finally:
        database.dispose()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=ATTEMPTS)
    attempts = parser.parse_args().attempts
    started = time.monotonic()
    with Postgres() as server:
        with _database(server.url) as database:
            upgrade(database.engine)
        try:
            jobs = stampede(server.url, attempts)
        except Overspent as overspent:
            print(f"overspent: {overspent}")
            return 1
    print(
        f"{attempts} attempts for {ACCOUNTS} accounts: {jobs} jobs, none overspent ({time.monotonic() - started:.0f} s)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
