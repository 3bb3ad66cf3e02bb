"""The lifecycle of a job: a worker claims it, opens it and renews its lease; it ends exactly once.

The API and the workers both use this module. The states are ``queued`` -> ``running`` -> ``succeeded`` | ``failed`` |
``cancelled``. A running job goes back to ``queued`` if its worker dies. It also goes back if its worker is being
stopped and hands the job over.

A claim sets a lease and raises the fencing token. A worker with an older token has lost the job and cannot change it.
One transaction ends the job and closes its reservation. A reservation that was never opened is voided; an opened one is
settled.

Leases use the database's clock. If that clock is set back, the lease of a dead worker could end far in the future.
Therefore a lease also counts as expired if more than twice the duration of a new lease remains.

Locks are always taken in this order: dataset, account, job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, literal

from app import crashpoints
from app.continuous_audit import alarm
from app.datasets import ingestion
from app.datasets import repository as datasets
from app.datasets.models import Dataset
from app.db import ReadSession, UtcDateTime, WriteSession, now, read_time
from app.errors import Internal, NotFound
from app.inference.core import plan_json
from app.jobs import repository
from app.jobs.models import Job
from app.jobs.terms import read_terms
from app.ledger import Ledger, Terms
from app.privacy.events import PrivacyEvent
from app.queue import RUN_JOB, TaskQueue

LEASE_SECONDS = 10.0
MAX_ATTEMPTS = 3
"""Largest number of attempts at a job, without handovers. If the last one loses its worker, the job has failed."""
MAX_HANDOVERS = 10
"""Largest number of handovers of a job. Handovers do not count as attempts; without a limit a job might never end."""


class JobError(StrEnum):
    """The reason why a job failed. Callers see no other detail."""

    RUN_FAILED = "run_failed"
    INTERRUPTED = "interrupted"
    DATASET_DELETED = "dataset_deleted"


class Stage(StrEnum):
    """The stage that a job has reached. Callers see it, so it never depends on the values of rows."""

    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    PUBLISHING = "publishing"
    ENDED = "ended"


class Hold(StrEnum):
    """Whether a worker still holds its job, and the reason if not."""

    HELD = "held"
    CANCELLED = "cancelled"
    HANDED_OVER = "handed_over"  # the worker is being stopped
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt at a job, with its fencing token."""

    job_id: str
    fencing_token: int
    attempt: int
    request_id: str | None = None  # of the call that submitted it
    trace: str | None = None  # the trace context of that call


def is_accounted(job: Job) -> bool:
    """Whether the job has a cost, and so a reservation in the ledger. Jobs on public data have none."""
    return job.cost_epsilon is not None


class Lifecycle:
    """The transitions of jobs; each takes a write transaction and does not commit it."""

    def __init__(self, ledger: Ledger, queue: TaskQueue, lease_seconds: float = LEASE_SECONDS) -> None:
        self._ledger = ledger
        self._queue = queue
        self._lease = timedelta(seconds=lease_seconds)

    def enqueue(self, tx: WriteSession, job_id: str) -> None:
        """Send the job's id to the queue after ``tx`` has committed."""

        def send() -> None:
            crashpoints.reach("before-queueing")
            self._queue.send(RUN_JOB, job_id)

        tx.after_commit(send)

    def claim(self, tx: WriteSession, job_id: str) -> Claim | None:
        """Claim a queued job; None if it is not queued any more or may not run again.

        One UPDATE sets all values. If a transaction updates a row twice, PostgreSQL checks the row's foreign keys at
        the second update. That check locks the dataset after the job, which breaks the order of locks.
        """
        at = read_time(tx)
        taken = repository.change(
            tx,
            job_id,
            Job.status == "queued",
            Job.attempts - Job.handovers < MAX_ATTEMPTS,
            Job.cancel_requested.is_(False),
            status="running",
            stage=Stage.PREPARING,
            steps_done=0,
            attempts=Job.attempts + 1,
            fencing_token=Job.fencing_token + 1,
            lease_until=at + self._lease,
            started_at=func.coalesce(Job.started_at, literal(at, UtcDateTime())),
        )
        job = repository.get(tx, job_id) if taken else None
        return None if job is None else Claim(job.id, job.fencing_token, job.attempts, job.request_id, job.trace)

    def check_terms(self, tx: WriteSession, claim: Claim) -> None:
        """Compare the job with its reservation, before its plan is used.

        Raises:
            StateConflict: the job differs from its reservation, and the ledger has therefore frozen the account. Also
                if the account was frozen before, or if an older version made the reservation without a signature.
        """
        job = self._lock(tx, claim.job_id)
        if self._ledger.is_reserved(tx, job.id):
            self._ledger.check_terms(tx, job.id, self._terms(tx, job))

    def open(self, tx: WriteSession, claim: Claim) -> Job | None:
        """Pin the content and mark the reservation as opened; None if the job is lost.

        Nothing is refunded afterwards. A later attempt uses the same content and the same reservation. If the dataset
        is deleted, this call ends the job and returns None.

        Raises:
            PrivacyAlarm: the continuous audit has raised an alarm, or its state is damaged. Nothing is opened.
        """
        job = self._lock(tx, claim.job_id)
        if self._ends_with_dataset(tx, job, claim):
            return None
        if not repository.change(tx, job.id, *_fence(claim), lease_until=read_time(tx) + self._lease):
            return None
        if job.content_id is None:
            content = ingestion.pin(tx, job.dataset_id)
            if content is None:
                raise Internal
            repository.change(tx, job.id, content_id=content.id)
        if self._ledger.is_reserved(tx, job.id):
            alarm.check(tx)
            planned = plan_json.from_json(job.plan).events
            self._ledger.open(tx, job.id, planned, self._terms(tx, job))
        return repository.get(tx, job.id)

    def heartbeat(self, tx: WriteSession, claim: Claim, *, stage: Stage, steps_done: int) -> Hold:
        """Extend the lease and record how many planned steps are done."""
        values = {"lease_until": read_time(tx) + self._lease, "stage": stage, "steps_done": steps_done}
        if not repository.change(tx, claim.job_id, *_fence(claim), **values):
            return Hold.LOST
        job = repository.get(tx, claim.job_id)
        return Hold.CANCELLED if job is not None and job.cancel_requested else Hold.HELD

    def settle(self, tx: WriteSession, claim: Claim, executed: tuple[PrivacyEvent, ...]) -> Hold:
        """Charge the job after its run.

        Returns:
            ``HELD``: the job is charged. The caller must publish the release and call :meth:`finish` in the same
            transaction. ``CANCELLED``: cancellation was requested, and this call has ended the job. ``LOST``: the
            dataset is deleted, another attempt holds the job, or the job has ended. If the result is not ``HELD``, the
            caller must not publish.
        """
        job = self._lock(tx, claim.job_id)
        if self._ends_with_dataset(tx, job, claim):
            return Hold.LOST
        if not repository.change(tx, job.id, *_fence(claim), stage=Stage.PUBLISHING):
            return Hold.LOST
        if job.cancel_requested:
            self.end_cancelled(tx, claim)
            return Hold.CANCELLED
        if self._ledger.is_reserved(tx, job.id):
            self._ledger.settle(tx, job.id, executed, self._terms(tx, job))
        return Hold.HELD

    def finish(self, tx: WriteSession, claim: Claim, release_id: str) -> None:
        """End a settled job as succeeded, with its release."""
        job = tx.get_one(Job, claim.job_id)
        values = {"status": "succeeded", "release_id": release_id, "steps_done": job.steps_planned}
        if not repository.change(tx, claim.job_id, *_fence(claim), **values, **_end_values()):
            raise Internal

    def fail(self, tx: WriteSession, claim: Claim, code: JobError) -> bool:
        """End the attempt's job as failed. It is charged if its reservation was opened.

        Return False if the attempt has lost the job.
        """
        job = self._lock(tx, claim.job_id)
        return self._end(tx, job, *_fence(claim), status="failed", error_code=code)

    def end_cancelled(self, tx: WriteSession, claim: Claim) -> bool:
        """End the attempt's job as cancelled; return False if the attempt has lost the job."""
        job = self._lock(tx, claim.job_id)
        return self._end(tx, job, *_fence(claim), status="cancelled")

    def request_cancel(self, tx: WriteSession, job_id: str) -> None:
        """Cancel a queued job at once. A running job stops at its next step, and an ended job does not change."""
        job = self._lock(tx, job_id)
        if not self._end(tx, job, Job.status == "queued", status="cancelled"):
            repository.change(tx, job_id, Job.status == "running", cancel_requested=True)

    def dataset_deleted(self, tx: WriteSession, dataset_id: str) -> None:
        """End all jobs of a dataset that is being deleted, in the same transaction."""
        for job_id in repository.find_unended(tx, dataset_id):
            self.abandon(tx, job_id)

    def abandon(self, tx: WriteSession, job_id: str) -> None:
        """End a job whose dataset is deleted, even if a worker holds it."""
        job = self._lock(tx, job_id)
        conditions = Job.status.not_in(repository.ENDED)
        self._end(tx, job, conditions, status="failed", error_code=JobError.DATASET_DELETED)

    def recover(self, tx: WriteSession, job_id: str) -> None:
        """Queue a running job again if its lease has expired.

        Then its worker has died. The job ends instead if its cancellation was requested, or if ``MAX_ATTEMPTS`` of its
        workers have died.
        """
        job = self._lock(tx, job_id)
        lost = (Job.status == "running", repository.has_lapsed(read_time(tx), self._lease))
        if job.cancel_requested:
            self._end(tx, job, *lost, status="cancelled")
        elif job.attempts - job.handovers >= MAX_ATTEMPTS:
            self._end(tx, job, *lost, status="failed", error_code=JobError.INTERRUPTED)
        else:
            self._requeue(tx, job_id, *lost)

    def find_lost(self, session: ReadSession) -> Sequence[str]:
        """Return the ids of running jobs with an expired lease, for :meth:`recover`."""
        return repository.find_expired(session, read_time(session), self._lease)

    def hand_over(self, tx: WriteSession, claim: Claim) -> bool:
        """Queue the attempt's job again at once, because its worker is being stopped.

        Return False if the job has too many handovers, is to be cancelled, or is lost. If the attempt still holds the
        job, its lease then expires, and :meth:`recover` decides.
        """
        conditions = (*_fence(claim), Job.handovers < MAX_HANDOVERS, Job.cancel_requested.is_(False))
        return self._requeue(tx, claim.job_id, *conditions, handovers=Job.handovers + 1)

    def remind(self, tx: WriteSession, job_id: str, queued_at: datetime) -> None:
        """Send the id of a queued job again, because its message may be lost.

        Do nothing if the job has left the queue or was queued again after ``queued_at``.
        """
        if repository.change(tx, job_id, Job.status == "queued", Job.queued_at == queued_at, queued_at=now()):
            self.enqueue(tx, job_id)

    def _requeue(self, tx: WriteSession, job_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
        back = {"status": "queued", "stage": Stage.QUEUED, "lease_until": None, "queued_at": now(), "steps_done": 0}
        if not repository.change(tx, job_id, *conditions, **back, **values):
            return False
        self.enqueue(tx, job_id)
        return True

    def _lock(self, tx: WriteSession, job_id: str) -> Job:
        """Lock the job's dataset and account, then read the job again."""
        job = repository.get(tx, job_id)
        if job is None:
            raise NotFound
        datasets.lock(tx, job.dataset_id)
        self._ledger.lock_reserved(tx, job.id)
        tx.refresh(job)
        return job

    def _terms(self, tx: WriteSession, job: Job) -> Terms:
        return read_terms(job, tx.get_one(Dataset, job.dataset_id))

    def _ends_with_dataset(self, tx: WriteSession, job: Job, claim: Claim) -> bool:
        dataset = datasets.get(tx, job.dataset_id)
        if dataset is not None and dataset.deleted_at is None:
            return False
        self._end(tx, job, *_fence(claim), status="failed", error_code=JobError.DATASET_DELETED)
        return True

    def _end(self, tx: WriteSession, job: Job, *conditions: ColumnElement[bool], **values: Any) -> bool:
        if not repository.change(tx, job.id, *conditions, **values, **_end_values()):
            return False
        if self._ledger.is_reserved(tx, job.id):
            self._close_reservation(tx, job.id)
        return True

    def _close_reservation(self, tx: WriteSession, job_id: str) -> None:
        state = self._ledger.state(tx, job_id)
        if state == "reserved":
            self._ledger.void(tx, job_id)
        elif state == "opened":
            self._ledger.settle(tx, job_id, ())


def _fence(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return Job.status == "running", Job.fencing_token == claim.fencing_token


def _end_values() -> dict[str, Any]:
    return {"ended_at": now(), "lease_until": None, "stage": Stage.ENDED}
