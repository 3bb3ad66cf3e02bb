"""One query on many workers: who runs the job asks for parts and adds them up, others take parts as messages come.

Who asks never waits. It takes parts itself, from the last one, while helpers take them from the first; after each of
its own it looks for what has been handed in. So a part that is lost, late, doubled or spoilt costs time and nothing
else: each is added exactly once, and noise is added once, by who asked.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from app.datasets.models import Dataset
from app.db import Database, ReadSession, now
from app.errors import CorevaultError
from app.inference.partition import Slots, Summation, cuts, largest_query
from app.inference.problems import Problem, problem_for
from app.inference.protocol import Integers, Question, RowSource
from app.jobs import repository as jobs
from app.jobs.lifecycle import Claim
from app.jobs.terms import read_terms
from app.ledger import Ledger
from app.queue import SUM_PARTITION, TaskQueue
from app.vault.areas import WorkerAreas
from app.vault.store import ObjectStore
from workers.assignments import Assignment, Tables, assignment
from workers.enclave import OpeningKey
from workers.enclave.exchange import MOST_PARTS, Exchange, Task, clear
from workers.parts import Memory, Parts

IDLE_SECONDS = 10.0
"""How long a helper keeps a part's rows in memory for the next query of the same attempt."""

_IDENTIFIER = re.compile(r"(job_[0-9a-z]{1,64}):([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class PartId:
    """Which part of which query of which attempt: all that a message says."""

    job_id: str
    token: int
    query: int
    part: int

    def __str__(self) -> str:
        return f"{self.job_id}:{self.token}:{self.query}:{self.part}"

    @classmethod
    def parse(cls, text: str) -> "PartId | None":
        found = _IDENTIFIER.fullmatch(text)
        return None if found is None else cls(found[1], *map(int, found.groups()[1:]))


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which queries are split, and into how many parts: by declared facts, plan and settings alone."""

    store: ObjectStore
    opening_key: OpeningKey
    queue: TaskQueue
    parts: int
    least_rows: int

    @contextmanager
    def share(self, held: Assignment, rows: RowSource) -> Iterator[Summation | None]:
        """How the sums of an attempt are carried out; None where its queries are not worth splitting."""
        run, claim = held.run, held.claim
        if not held.accounted or self.parts == 1 or largest_query(run.plan, run.facts) < self.least_rows:
            yield None
            return
        exchange = Exchange(self.store, self.opening_key, claim.job_id, claim.fencing_token)
        try:
            yield SharedSum(self, claim, exchange, problem_for(run.plan.model, run.facts), rows)
        finally:
            self.clear(claim.job_id, claim.fencing_token)

    def clear(self, job_id: str, token: int) -> None:
        """See :func:`workers.enclave.exchange.clear`."""
        clear(self.store, job_id, token)


class SharedSum:
    """The sums of one attempt (a :data:`~app.inference.partition.Summation`), on whatever workers are free."""

    def __init__(self, sharing: Sharing, claim: Claim, exchange: Exchange, problem: Problem, rows: RowSource) -> None:
        self._sharing = sharing
        self._claim = claim
        self._exchange = exchange
        self._rows = rows
        self._parts = Parts(problem, rows.rows_per_slot)
        self._query = -1

    def __call__(self, question: Question, slots: Slots) -> Integers:
        """The exact sum over ``slots``; nothing of it is left anywhere afterwards.

        Raises:
            PartFaulty: a helper met a fault among the rows.
            VaultError, DependencyUnavailable: the table does not open any more, or the store is away.
        """
        self._query += 1
        parts = min(self._sharing.parts, MOST_PARTS)
        task = Task(question, slots, cuts(len(slots), self._rows.rows_per_slot, parts))
        if task.parts == 1:
            return self._own(task, 0)
        try:
            self._ask(task)
            return self._collect(task)
        finally:
            self._sharing.clear(self._claim.job_id, self._claim.fencing_token)

    def _ask(self, task: Task) -> None:
        """Help is welcome, not needed: a store or a broker that is away costs time only."""
        if self._exchange.tell(self._query, task):
            claim = self._claim
            parts = (PartId(claim.job_id, claim.fencing_token, self._query, part) for part in range(task.parts - 1))
            self._sharing.queue.send_group(SUM_PARTITION, [str(part) for part in parts])

    def _collect(self, task: Task) -> Integers:
        found: dict[int, Integers] = {}
        for part in reversed(range(task.parts)):
            if part not in found:
                found[part] = self._own(task, part)
            for other in range(part):
                sums = None if other in found else self._exchange.read_part(self._query, task, other)
                if sums is not None:
                    found[other] = sums
        return np.asarray(np.sum(list(found.values()), axis=0))

    def _own(self, task: Task, part: int) -> Integers:
        return self._parts.sum(task.question, task.units(part), lambda: nullcontext(self._rows))


class Helper:
    """Takes parts of other workers' queries. A message that comes twice, late or from nobody opens no table."""

    def __init__(
        self, database: Database, ledger: Ledger, areas: WorkerAreas, opening_key: OpeningKey, tables: Tables
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._areas = areas
        self._opening_key = opening_key
        self._tables = tables
        self._memory = Memory(IDLE_SECONDS)

    def run(self, identifier: str) -> None:
        """Hand in the part if it is still wanted.

        Raises:
            VaultError, DependencyUnavailable, MemoryError: nothing is handed in; who asked will take the part.
        """
        wanted = PartId.parse(identifier)
        if wanted is None:
            return
        with self._database.read() as session:
            held = self._find_attempt(session, wanted)
        exchange = Exchange(self._areas.vault, self._opening_key, wanted.job_id, wanted.token)
        task = None if held is None else exchange.read_task(wanted.query)
        if held is None or task is None or wanted.part >= task.parts:
            return
        exchange.hand_in(wanted.query, task, wanted.part, self._sums(held, task, wanted.part))
        if exchange.read_task(wanted.query) is None:
            exchange.withdraw(wanted.query, wanted.part)

    def _find_attempt(self, session: ReadSession, wanted: PartId) -> Assignment | None:
        """The attempt that asks, if it still holds the job and has opened its reservation."""
        job = jobs.get(session, wanted.job_id)
        if job is None or (job.status, job.fencing_token) != ("running", wanted.token):
            return None
        if job.lease_until is None or job.lease_until < now():
            return None
        if not self._ledger.is_opened(session, job.id, read_terms(job, session.get_one(Dataset, job.dataset_id))):
            return None
        box = self._areas.keys.box(job.dataset_id)
        return assignment(session, Claim(job.id, wanted.token, job.attempts), job, box)

    def _sums(self, held: Assignment, task: Task, part: int) -> Integers | None:
        """The part's sums; None for a fault among the rows, which ends the job and freezes the account."""
        run, claim = held.run, held.claim
        parts = self._memory.of(
            (claim.job_id, claim.fencing_token),
            lambda: Parts(problem_for(run.plan.model, run.facts), run.facts.rows_per_unit),
        )
        try:
            return parts.sum(task.question, task.units(part), lambda: self._tables(held))
        except (CorevaultError, MemoryError):
            raise
        except Exception:  # noqa: BLE001  (whatever it is, it may tell of a row)
            return None
        finally:
            self._memory.keep()
