"""Finds what got lost, in whichever worker holds the ``sweeper`` lease.

That is: runs without a worker, messages that never arrived, jobs of deleted datasets, bytes that nothing needs, freezes
that no mark tells of. The sweeper is a thread of the worker's parent process and holds ``FORKING`` while it works, so
that no child is ever forked out of the middle of it.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import structlog
from sqlalchemy import or_, update
from sqlalchemy.exc import IntegrityError

from app.datasets import ingestion
from app.datasets import repository as datasets
from app.datasets.disposal import Disposal
from app.db import Database, WriteSession, moment, now
from app.jobs import repository
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job, WorkerLease
from app.ledger import Ledger
from app.queue import TaskQueue
from app.releases.publication import discard
from workers.split_queries.mailbox import clear

LEASE_NAME = "sweeper"
LEASE = timedelta(seconds=5)
RENEW_BEFORE = timedelta(seconds=3)
SHORTEST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(seconds=60)
UNFINISHED_SECONDS = 24 * 3600.0
RARELY_SECONDS = 600.0
LATEST = timedelta(minutes=30)
"""How long after a job's end a worker that does not know of it may still store something."""

FORKING = threading.Lock()
os.register_at_fork(before=FORKING.acquire, after_in_parent=FORKING.release, after_in_child=FORKING.release)


class Sweeper:
    """One sweep a second. An error ends a step of a sweep, never the sweeper."""

    def __init__(
        self, database: Database, ledger: Ledger, lifecycle: Lifecycle, queue: TaskQueue, disposal: Disposal
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._lifecycle = lifecycle
        self._queue = queue
        self._disposal = disposal
        self._areas = disposal.areas
        self._holder = secrets.token_hex(16)
        self._renew_at = time.monotonic()
        self._rare_at = time.monotonic()

    def run(self, every_seconds: float, stop: threading.Event) -> None:
        """Sweep until ``stop`` is set; then let another worker take over at once."""
        while not stop.wait(every_seconds):
            with FORKING:
                self.sweep()
        with FORKING, _going_on("release"):
            self._release()

    def sweep(self) -> None:
        """One round, if this worker holds the lease."""
        leading = False
        with _going_on("lease"):
            leading = self._lead()
        if not leading:
            return
        for name, step in (
            ("expired", self._recover),
            ("waiting", self._remind),
            ("orphaned", self._abandon),
            ("contents", self._contents),
            ("disposal", self._dispose),
            ("uploads", self._lapse),
            ("freezes", self._freezes),
            ("unfinished", self._remove_unfinished),
        ):
            with _going_on(name):
                step()

    def _lead(self) -> bool:
        started = time.monotonic()
        if started < self._renew_at:
            return True
        with self._database.write() as tx:
            held = _take_lease(tx, self._holder)
        if held:
            self._renew_at = started + (LEASE - RENEW_BEFORE).total_seconds()
        return held

    def _release(self) -> None:
        with self._database.write() as tx:
            mine = update(WorkerLease).where(WorkerLease.name == LEASE_NAME, WorkerLease.holder == self._holder)
            tx.execute(mine.values(until=moment(tx)))

    def _recover(self) -> None:
        with self._database.read() as session:
            job_ids = self._lifecycle.find_lost(session)
        self._end(job_ids, self._lifecycle.recover)

    def _destroy_attempts(self, job_id: str) -> None:
        """What a job's attempts told each other is nobody's once it has ended; what they stored, without a release."""
        with self._database.read() as session:
            job = repository.get(session, job_id)
        if job is None or job.status not in repository.ENDED:
            return
        for token in range(1, job.fencing_token + 1):
            clear(self._areas.vault, job_id, token)
            if job.release_id is None:
                discard(self._areas.released, job_id, token)

    def _abandon(self) -> None:
        with self._database.read() as session:
            job_ids = repository.find_orphaned(session)
        self._end(job_ids, self._lifecycle.abandon)

    def _remind(self) -> None:
        """The longer a job waits, the rarer its reminders: behind a long queue its message is most likely there."""
        at = now()
        with self._database.read() as session:
            found = repository.waiting(session, at - SHORTEST_WAIT, at + SHORTEST_WAIT)
            waiting = [job for job in found if _is_due(job)]
        for job in waiting:
            with self._database.write() as tx:
                self._lifecycle.remind(tx, job.id, job.queued_at)

    def _end(self, job_ids: Sequence[str], change: Callable[[WriteSession, str], None]) -> None:
        """Each in a transaction of its own, so that one that fails does not hold up the others."""
        for job_id in job_ids:
            with _going_on("job"), self._database.write() as tx:
                change(tx, job_id)
            with _going_on("attempts"):
                self._destroy_attempts(job_id)

    def _contents(self) -> None:
        with self._database.write() as tx:
            ingestion.requeue_stale(tx, self._queue)

    def _dispose(self) -> None:
        with self._database.read() as session:
            half_deleted = datasets.half_deleted(session)
        self._disposal.keys(half_deleted)
        self._disposal.contents(self._database, repository.is_pinned)

    def _lapse(self) -> None:
        self._disposal.end_lapsed(self._database)

    def _freezes(self) -> None:
        with self._database.read() as session:
            unmarked = self._ledger.unmarked_freezes(session)
        for account_id in unmarked:
            with _going_on("freeze"), self._database.write() as tx:
                self._ledger.mark_freeze(tx, account_id)

    def _remove_unfinished(self) -> None:
        if time.monotonic() >= self._rare_at:
            self._rare_at = time.monotonic() + RARELY_SECONDS
            for area in self._areas.all:
                area.delete_unfinished(UNFINISHED_SECONDS)
            self._database.forget()
            self._end_of_jobs()

    def _end_of_jobs(self) -> None:
        """Once more for jobs that ended lately: a worker that died then, or came too late, has left what it stored."""
        with self._database.read() as session:
            ended = repository.find_untidied(session)
        for job in ended:
            with _going_on("attempts"):
                self._destroy_attempts(job.id)
                if job.ended_at is None or abs(now() - job.ended_at) > LATEST:
                    with self._database.write() as tx:
                        repository.change(tx, job.id, tidied=True)


@contextmanager
def _going_on(step: str) -> Iterator[None]:
    """Keep an error from ending more than ``step``: the next sweep tries again."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever it is, the other steps go on)
        structlog.get_logger().warning("sweep failed", step=step, kind=type(error).__name__)


def _take_lease(tx: WriteSession, holder: str) -> bool:
    """Renew the lease, or take it over once it has run out (or lies further ahead than it could by this clock)."""
    at = moment(tx)
    free = or_(WorkerLease.holder == holder, WorkerLease.until < at, WorkerLease.until > at + 2 * LEASE)
    taken = (
        update(WorkerLease)
        .where(WorkerLease.name == LEASE_NAME, free)
        .values(holder=holder, until=at + LEASE)
        .returning(WorkerLease.name)
    )
    if tx.execute(taken, execution_options={"synchronize_session": False}).one_or_none() is not None:
        return True
    if tx.get(WorkerLease, LEASE_NAME) is not None:
        return False
    try:
        with tx.begin_nested():
            tx.add(WorkerLease(name=LEASE_NAME, holder=holder, until=at + LEASE))
    except IntegrityError:
        return False
    return True


def _is_due(job: Job) -> bool:
    """By this machine's clock, set back or not: a reminder too many does no harm."""
    patience = min(LONGEST_WAIT, max(SHORTEST_WAIT, (job.queued_at - job.created_at) / 2))
    return abs(now() - job.queued_at) >= patience
