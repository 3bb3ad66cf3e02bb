"""The coordinator: the worker that runs the job splits a query into parts and adds up their sums.

The coordinator never waits. It sums parts from the last one on, while helpers sum parts from the first one on. After
each part it collects the parts of the helpers. A part that is lost, late, duplicated or damaged only costs time: each
part is added exactly once, and the coordinator adds the noise once.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from app.inference.conjugate import RowProblem, make_run_problem
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import Slots, Summation, compute_largest_query, cut_units
from app.jobs.lifecycle import Claim
from app.queue import SUM_PARTITION, TaskQueue
from app.vault.store import ObjectStore
from workers.assignments import Assignment
from workers.enclave import OpeningKey
from workers.split_queries.mailbox import MOST_PARTS, Mailbox, Task, clear_mailbox
from workers.split_queries.part_id import PartId
from workers.split_queries.resident_parts import PartSummer


@dataclass(frozen=True, slots=True)
class Sharing:
    """Decides which queries are split, and into how many parts.

    The decision follows from declared facts, plan and settings alone.
    """

    store: ObjectStore
    opening_key: OpeningKey
    queue: TaskQueue
    parts: int
    least_rows: int

    @contextmanager
    def share(self, assignment: Assignment, rows: RowSource) -> Iterator[Summation | None]:
        """Make the summation of an attempt; None if its queries are too small to split."""
        run, claim = assignment.run, assignment.claim
        if (
            not assignment.is_accounted
            or self.parts == 1
            or compute_largest_query(run.plan, run.facts) < self.least_rows
        ):
            yield None
            return
        mailbox = Mailbox(self.store, self.opening_key, claim.job_id, claim.fencing_token)
        try:
            yield SplitSum(self, claim, mailbox, make_run_problem(run.plan, run.facts), rows)
        finally:
            self.clear(claim.job_id, claim.fencing_token)

    def clear(self, job_id: str, token: int) -> None:
        """Destroy the mailbox of an attempt; see :func:`workers.split_queries.mailbox.clear_mailbox`."""
        clear_mailbox(self.store, job_id, token)


class SplitSum:
    """Computes the sums of one attempt together with the helpers that are free.

    A :data:`~app.inference.private_zone.partition.Summation`.
    """

    def __init__(self, sharing: Sharing, claim: Claim, mailbox: Mailbox, problem: RowProblem, rows: RowSource) -> None:
        self._sharing = sharing
        self._claim = claim
        self._mailbox = mailbox
        self._rows = rows
        self._summer = PartSummer(problem, rows.rows_per_slot)
        self._query = -1

    def __call__(self, query: Query, slots: Slots) -> Integers:
        """Compute the exact sum over ``slots``; no part of it remains in the store afterwards.

        Raises:
            PartFaulty: a helper's computation on rows failed.
            VaultError, DependencyUnavailable: the table does not open any more, or the store is away.
        """
        self._query += 1
        parts = min(self._sharing.parts, MOST_PARTS)
        task = Task(query, slots, cut_units(len(slots), self._rows.rows_per_slot, parts))
        if task.parts == 1:
            return self._sum_part(task, 0)
        try:
            self._ask_helpers(task)
            return self._collect(task)
        finally:
            self._sharing.clear(self._claim.job_id, self._claim.fencing_token)

    def _ask_helpers(self, task: Task) -> None:
        """Ask helpers for parts. They are optional: if the store or the broker is away, the query takes longer."""
        if self._mailbox.put_task(self._query, task):
            claim = self._claim
            parts = (PartId(claim.job_id, claim.fencing_token, self._query, part) for part in range(task.parts - 1))
            self._sharing.queue.send_group(SUM_PARTITION, [str(part) for part in parts])

    def _collect(self, task: Task) -> Integers:
        sums: dict[int, Integers] = {}
        for part in reversed(range(task.parts)):
            if part not in sums:
                sums[part] = self._sum_part(task, part)
            for other in range(part):
                received = None if other in sums else self._mailbox.read_part(self._query, task, other)
                if received is not None:
                    sums[other] = received
        return np.asarray(np.sum(list(sums.values()), axis=0))

    def _sum_part(self, task: Task, part: int) -> Integers:
        return self._summer.sum(task.query, task.units(part), lambda: nullcontext(self._rows))
