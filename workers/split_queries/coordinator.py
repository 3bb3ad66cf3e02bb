"""The coordinator: the worker that runs the job splits a query into parts and adds up their sums.

It never waits. It takes parts itself, from the last one, while helpers take them from the first. After each of its own
it collects what helpers handed in. A part that is lost, late, duplicated or damaged costs time and nothing else: each
is added exactly once, and the coordinator adds the noise once.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from app.inference.core.problems import Problem, problem_for
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import Slots, Summation, cuts, largest_query
from app.jobs.lifecycle import Claim
from app.queue import SUM_PARTITION, TaskQueue
from app.vault.store import ObjectStore
from workers.assignments import Assignment
from workers.enclave import OpeningKey
from workers.split_queries.mailbox import MOST_PARTS, Exchange, Task, clear
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import Parts


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
        """See :func:`workers.split_queries.mailbox.clear`."""
        clear(self.store, job_id, token)


class SharedSum:
    """The sums of one attempt, on the workers that are free.

    A :data:`~app.inference.private_zone.partition.Summation`.
    """

    def __init__(self, sharing: Sharing, claim: Claim, exchange: Exchange, problem: Problem, rows: RowSource) -> None:
        self._sharing = sharing
        self._claim = claim
        self._exchange = exchange
        self._rows = rows
        self._parts = Parts(problem, rows.rows_per_slot)
        self._query = -1

    def __call__(self, query: Query, slots: Slots) -> Integers:
        """The exact sum over ``slots``; nothing of it is left anywhere afterwards.

        Raises:
            PartFaulty: a helper met a fault among the rows.
            VaultError, DependencyUnavailable: the table does not open any more, or the store is away.
        """
        self._query += 1
        parts = min(self._sharing.parts, MOST_PARTS)
        task = Task(query, slots, cuts(len(slots), self._rows.rows_per_slot, parts))
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
        return self._parts.sum(task.query, task.units(part), lambda: nullcontext(self._rows))
