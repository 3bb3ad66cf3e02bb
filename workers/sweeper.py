"""The sweeper: repairs lost work once a second, in the worker that holds the ``sweeper`` lease.

It re-queues runs whose worker is gone and messages that never arrived, and ends jobs of deleted datasets. It deletes
unneeded objects, marks freezes that the high-water mark does not have yet, and notices damaged evidence of the
continuous audit. It is a thread of the worker's parent process. It holds ``FORKING`` while it works, so that no child
is forked during a sweep.
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

from app.continuous_audit.service import mark_damage
from app.continuous_audit.status import read_status
from app.datasets import ingestion
from app.datasets import repository as datasets
from app.datasets.disposal import Disposal
from app.db import Database, WriteSession, now, read_time
from app.inference.audit.batches import list_weights
from app.jobs import repository
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job, WorkerLease
from app.ledger import Ledger
from app.queue import TaskQueue
from app.releases.publication import discard
from workers.presence import Presence
from workers.split_queries.mailbox import clear_mailbox

LEASE_NAME = "sweeper"
LEASE = timedelta(seconds=5)
RENEW_BEFORE = timedelta(seconds=3)
SHORTEST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(seconds=60)
UNFINISHED_SECONDS = 24 * 3600.0
RARELY_SECONDS = 600.0
LATEST = timedelta(minutes=30)
"""How long after a job's end another worker may still store objects for it."""

FORKING = threading.Lock()
os.register_at_fork(before=FORKING.acquire, after_in_parent=FORKING.release, after_in_child=FORKING.release)


class Sweeper:
    """Sweeps once a second.

    An error ends one step of a sweep, never the sweeper.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        lifecycle: Lifecycle,
        queue: TaskQueue,
        disposal: Disposal,
        *,
        presence: Presence | None = None,
    ) -> None:
        """Prepare to sweep. ``presence`` records a sign of life of this worker before each sweep."""
        self._database = database
        self._ledger = ledger
        self._lifecycle = lifecycle
        self._queue = queue
        self._disposal = disposal
        self._presence = presence
        self._areas = disposal.areas
        self._holder = secrets.token_hex(16)
        self._renew_at = time.monotonic()
        self._rare_at = time.monotonic()

    def run(self, every_seconds: float, stop: threading.Event) -> None:
        """Sweep until ``stop`` is set; then let another worker take over at once."""
        while not stop.wait(every_seconds):
            with FORKING:
                self._report()
                self.sweep()
        with FORKING, _log_errors("release"):
            self._release_lease()
        if self._presence is not None:
            with FORKING, _log_errors("presence"):
                self._presence.end()

    def _report(self) -> None:
        if self._presence is not None:
            with _log_errors("presence"):
                self._presence.report()

    def sweep(self) -> None:
        """Sweep once, if this worker holds the lease."""
        has_lease = False
        with _log_errors("lease"):
            has_lease = self._renew_lease()
        if not has_lease:
            return
        for name, step in (
            ("expired", self._recover_jobs),
            ("waiting", self._remind_workers),
            ("orphaned", self._abandon_jobs),
            ("contents", self._requeue_contents),
            ("disposal", self._delete_unneeded),
            ("uploads", self._end_lapsed_uploads),
            ("freezes", self._mark_freezes),
            ("audit", self._check_audit),
            ("unfinished", self._clean_up_rarely),
        ):
            with _log_errors(name):
                step()

    def _renew_lease(self) -> bool:
        started = time.monotonic()
        if started < self._renew_at:
            return True
        with self._database.write() as tx:
            has_lease = _take_lease(tx, self._holder)
        if has_lease:
            self._renew_at = started + (LEASE - RENEW_BEFORE).total_seconds()
        return has_lease

    def _release_lease(self) -> None:
        with self._database.write() as tx:
            mine = update(WorkerLease).where(WorkerLease.name == LEASE_NAME, WorkerLease.holder == self._holder)
            tx.execute(mine.values(until=read_time(tx)))

    def _recover_jobs(self) -> None:
        with self._database.read() as session:
            job_ids = self._lifecycle.find_lost(session)
        self._end_jobs(job_ids, self._lifecycle.recover)

    def _destroy_attempts(self, job_id: str) -> None:
        """Destroy the mailboxes of an ended job's attempts.

        If the job has no release, the objects that its attempts stored are destroyed as well.
        """
        with self._database.read() as session:
            job = repository.get(session, job_id)
        if job is None or job.status not in repository.ENDED:
            return
        for token in range(1, job.fencing_token + 1):
            clear_mailbox(self._areas.vault, job_id, token)
            if job.release_id is None:
                discard(self._areas.released, job_id, token)

    def _abandon_jobs(self) -> None:
        with self._database.read() as session:
            job_ids = repository.find_orphaned(session)
        self._end_jobs(job_ids, self._lifecycle.abandon)

    def _remind_workers(self) -> None:
        """Send the messages of waiting jobs again.

        The longer a job waits, the rarer its reminders: it is probably behind a long queue, with its message in place.
        """
        at = now()
        with self._database.read() as session:
            waiting = repository.list_waiting(session, at - SHORTEST_WAIT, at + SHORTEST_WAIT)
            due = [job for job in waiting if _is_due(job)]
        for job in due:
            with self._database.write() as tx:
                self._lifecycle.remind(tx, job.id, job.queued_at)

    def _end_jobs(self, job_ids: Sequence[str], change: Callable[[WriteSession, str], None]) -> None:
        """End each job in a separate transaction: a failure does not block the others."""
        for job_id in job_ids:
            with _log_errors("job"), self._database.write() as tx:
                change(tx, job_id)
            with _log_errors("attempts"):
                self._destroy_attempts(job_id)

    def _requeue_contents(self) -> None:
        with self._database.write() as tx:
            ingestion.requeue_stale(tx, self._queue)

    def _delete_unneeded(self) -> None:
        with self._database.read() as session:
            half_deleted = datasets.list_half_deleted(session)
        self._disposal.keys(half_deleted)
        self._disposal.contents(self._database, repository.is_pinned)

    def _end_lapsed_uploads(self) -> None:
        self._disposal.end_lapsed(self._database)

    def _mark_freezes(self) -> None:
        with self._database.read() as session:
            unmarked = self._ledger.unmarked_freezes(session)
        for account_id in unmarked:
            with _log_errors("freeze"), self._database.write() as tx:
                self._ledger.mark_freeze(tx, account_id)

    def _check_audit(self) -> None:
        """Notice damaged evidence of the audit, also where no worker draws batches."""
        with self._database.read() as session:
            is_unnoticed = read_status(session).is_unnoticed
        if is_unnoticed:
            with self._database.write() as tx:
                mark_damage(tx, list_weights())

    def _clean_up_rarely(self) -> None:
        if time.monotonic() >= self._rare_at:
            self._rare_at = time.monotonic() + RARELY_SECONDS
            for area in self._areas.all:
                area.delete_unfinished(UNFINISHED_SECONDS)
            self._database.forget()
            self._tidy_ended_jobs()

    def _tidy_ended_jobs(self) -> None:
        """Destroy the attempts of recently ended jobs again.

        A worker that died at the job's end, or that stored objects after it, has left them behind.
        """
        with self._database.read() as session:
            ended = repository.find_untidied(session)
        for job in ended:
            with _log_errors("attempts"):
                self._destroy_attempts(job.id)
                if job.ended_at is None or abs(now() - job.ended_at) > LATEST:
                    with self._database.write() as tx:
                        repository.change(tx, job.id, tidied=True)


@contextmanager
def _log_errors(step: str) -> Iterator[None]:
    """Log an error of ``step`` and continue: the next sweep tries again."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (after any error the other steps continue)
        structlog.get_logger().warning("sweep failed", step=step, kind=type(error).__name__)


def _take_lease(tx: WriteSession, holder: str) -> bool:
    """Renew the lease, or take over an expired one; True if ``holder`` has it now.

    A lease that ends later than any lease can by this clock also counts as expired.
    """
    at = read_time(tx)
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
    """Whether the job's message is due again.

    This machine's clock may have been set back, but extra reminders are harmless.
    """
    patience = min(LONGEST_WAIT, max(SHORTEST_WAIT, (job.queued_at - job.created_at) / 2))
    return abs(now() - job.queued_at) >= patience
