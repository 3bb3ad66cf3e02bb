"""The clients of :mod:`benchmarks.ledger`: threads that reserve in rounds, and void between rounds."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

from app.db import Database, GroupCommit, WriteSession, make_engine
from app.ledger import Charge, Commitment, Ledger
from app.privacy.events import GaussianEvent
from app.vault.signing import Signer

CLIENTS, PROCESSES, EACH = 32, 2, 8
SLOTS, FACTS = 1_000, "f" * 64
_COMMITMENT = Commitment("a" * 64, FACTS, {"kind": "row"}, SLOTS)


@dataclass(frozen=True, slots=True)
class Crew:
    """The clients of one process."""

    url: str
    accounts: int
    number: int
    rounds: int


@dataclass(slots=True)
class Clock:
    """Wall and processor seconds of a process while its clients reserve, and all latencies."""

    wall: float = 0.0
    cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def start(self) -> None:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()

    def stop(self) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


def reserve(crew: Crew, turns: Barrier, results: Any) -> None:
    """``CLIENTS / PROCESSES`` threads that reserve, round after round; the first round warms up."""
    threads = CLIENTS // PROCESSES
    names = [crew.number * threads + index for index in range(threads)]
    database, ledger, clock = Database(make_engine(crew.url, connections=threads)), make_ledger(), Clock()
    with ThreadPoolExecutor(threads) as pool:
        group_commit = GroupCommit(database, ledger.lock_all)
        clients = [Client(database, group_commit, ledger, f"ds_{name % crew.accounts}", name) for name in names]
        for turn in range(crew.rounds + 1):
            list(pool.map(lambda client, turn=turn: client.price(turn), clients))
            turns.wait()
            clock.start()
            taken = list(pool.map(lambda client, turn=turn: client.reserve(turn), clients))
            turns.wait()
            clock.stop()
            clock.latencies += [each for part in taken for each in part]
            list(pool.map(lambda client, turn=turn: client.void_all(turn), clients))
            if turn == 0:
                clock = Clock()
    results.put(clock)
    database.dispose()


@dataclass(frozen=True, slots=True)
class Client:
    """Reserves ``EACH`` jobs a round in sequence, each with a different noise."""

    database: Database
    group_commit: GroupCommit
    ledger: Ledger
    dataset_id: str
    name: int

    def price(self, turn: int) -> None:
        with self.database.read() as session:
            for index in range(EACH):
                self.ledger.preview(session, self.dataset_id, _charge(self.name, turn, index))

    def reserve(self, turn: int) -> list[float]:
        latencies = []
        for index in range(EACH):
            charge = _charge(self.name, turn, index)
            started = time.perf_counter()
            reserve = partial(self._reserve, job_id=self._job(turn, index), charge=charge)
            self.group_commit.transact(reserve, self.dataset_id)
            latencies.append(time.perf_counter() - started)
        return latencies

    def _reserve(self, tx: WriteSession, *, job_id: str, charge: Charge) -> None:
        self.ledger.reserve(tx, self.dataset_id, job_id, charge, commitment=_COMMITMENT)

    def void_all(self, turn: int) -> None:
        for index in range(EACH):
            with self.database.write() as tx:
                self.ledger.void(tx, self._job(turn, index))

    def _job(self, turn: int, index: int) -> str:
        return f"job_{self.name}_{turn}_{index}"


def _charge(name: int, turn: int, index: int) -> Charge:
    return Charge((GaussianEvent(2_000.0 + name + turn / 100 + index / 10_000),))


def make_ledger() -> Ledger:
    """A ledger with a fixed key."""
    return Ledger(Signer(bytes(32)), max_epsilon=20.0)
