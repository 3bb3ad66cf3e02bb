"""The life of a job: claimed, opened, kept alive, and ended exactly once.

API and worker share these rules. ``queued`` -> ``running`` -> ``succeeded`` | ``failed`` | ``cancelled``; an attempt
whose worker has died, or hands it over because it is being stopped, goes back to ``queued``. A claim sets a lease and
raises the fencing token; whoever comes back with an older token has lost the job and changes nothing. Ending a job and
closing its reservation are one transaction: voided if the data was never opened, settled otherwise.

Leases go by the database's clock. A clock that is set back would leave a dead worker's lease in the future, so one that
reaches further than any that could be granted now has run out as well.

Locks are taken in one order everywhere: dataset, account, job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, literal

from app import crashpoints
from app.datasets import ingestion
from app.datasets import repository as datasets
from app.datasets.models import Dataset
from app.db import ReadSession, UtcDateTime, WriteSession, moment, now
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
"""How often a job may lose its worker."""
MAX_HANDOVERS = 10
"""How often it may be handed over without that being counted, so that every job ends."""


class JobError(StrEnum):
    """Why a job failed: all that anybody is told."""

    RUN_FAILED = "run_failed"
    INTERRUPTED = "interrupted"
    DATASET_DELETED = "dataset_deleted"


class Stage(StrEnum):
    """Where a job stands, in words that follow from the plan alone."""

    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    PUBLISHING = "publishing"
    ENDED = "ended"


class Hold(StrEnum):
    """What a worker still has of the job that it claimed."""

    HELD = "held"
    CANCELLED = "cancelled"
    HANDED_OVER = "handed_over"  # the worker is being stopped
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt: the job, and the token that fences it."""

    job_id: str
    fencing_token: int
    attempt: int
    request_id: str | None = None  # of the call that submitted it
    trace: str | None = None  # the trace context of that call


def is_accounted(job: Job) -> bool:
    """Whether the ledger holds a reservation for the job (jobs on public data have none)."""
    return job.cost_epsilon is not None


class Lifecycle:
    """The transitions. Each takes a write transaction and commits nothing."""

    def __init__(self, ledger: Ledger, queue: TaskQueue, lease_seconds: float = LEASE_SECONDS) -> None:
        self._ledger = ledger
        self._queue = queue
        self._lease = timedelta(seconds=lease_seconds)

    def enqueue(self, tx: WriteSession, job_id: str) -> None:
        """Send the job's id once ``tx`` is durable."""

        def send() -> None:
            crashpoints.reach("before-queueing")
            self._queue.send(RUN_JOB, job_id)

        tx.after_commit(send)

    def claim(self, tx: WriteSession, job_id: str) -> Claim | None:
        """Take a queued job; None if another delivery has it, it has ended, or it may not run any more.

        One UPDATE: a second one of the same row would make PostgreSQL check its foreign keys, and so lock the dataset
        after the job.
        """
        at = moment(tx)
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
        """Compare the job with its reservation, before anything is made of its plan.

        Raises:
            StateConflict: it is not the job that was reserved for, and the account is frozen.
        """
        job = self._lock(tx, claim.job_id)
        if self._ledger.is_reserved(tx, job.id):
            self._ledger.check_terms(tx, job.id, self._terms(tx, job))

    def open(self, tx: WriteSession, claim: Claim) -> Job | None:
        """The point of no return: pin the content and mark the reservation opened. None if the job is lost.

        A later attempt finds both done and runs under them. A dataset that is gone ends the job.
        """
        job = self._lock(tx, claim.job_id)
        if self._ends_with_dataset(tx, job, claim):
            return None
        if not repository.change(tx, job.id, *_fence(claim), lease_until=moment(tx) + self._lease):
            return None
        if job.content_id is None:
            content = ingestion.pin(tx, job.dataset_id)
            if content is None:
                raise Internal
            repository.change(tx, job.id, content_id=content.id)
        if self._ledger.is_reserved(tx, job.id):
            planned = plan_json.from_json(job.plan).events
            self._ledger.open(tx, job.id, planned, self._terms(tx, job))
        return repository.get(tx, job.id)

    def heartbeat(self, tx: WriteSession, claim: Claim, *, stage: Stage, steps_done: int) -> Hold:
        """Extend the lease and note the planned steps done."""
        values = {"lease_until": moment(tx) + self._lease, "stage": stage, "steps_done": steps_done}
        if not repository.change(tx, claim.job_id, *_fence(claim), **values):
            return Hold.LOST
        job = repository.get(tx, claim.job_id)
        return Hold.CANCELLED if job is not None and job.cancel_requested else Hold.HELD

    def settle(self, tx: WriteSession, claim: Claim, executed: tuple[PrivacyEvent, ...]) -> Hold:
        """Charge the job, before its release is written in the same transaction; :meth:`finish` must follow.

        Unless ``HELD`` nothing may be published: the job is somebody else's, or has just been ended here.
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
        """End a settled job with its release."""
        job = tx.get_one(Job, claim.job_id)
        values = {"status": "succeeded", "release_id": release_id, "steps_done": job.steps_planned}
        if not repository.change(tx, claim.job_id, *_fence(claim), **values, **_end_values()):
            raise Internal

    def fail(self, tx: WriteSession, claim: Claim, code: JobError) -> bool:
        """End the attempt's job for good: charged if the data was opened, released otherwise."""
        job = self._lock(tx, claim.job_id)
        return self._end(tx, job, *_fence(claim), status="failed", error_code=code)

    def end_cancelled(self, tx: WriteSession, claim: Claim) -> bool:
        """End the attempt's job because somebody asked for it."""
        job = self._lock(tx, claim.job_id)
        return self._end(tx, job, *_fence(claim), status="cancelled")

    def request_cancel(self, tx: WriteSession, job_id: str) -> None:
        """Cancel a queued job at once, a running one at its next step; an ended one stays as it is."""
        job = self._lock(tx, job_id)
        if not self._end(tx, job, Job.status == "queued", status="cancelled"):
            repository.change(tx, job_id, Job.status == "running", cancel_requested=True)

    def dataset_deleted(self, tx: WriteSession, dataset_id: str) -> None:
        """End all jobs of a dataset that is being deleted, in the same transaction."""
        for job_id in repository.find_unended(tx, dataset_id):
            self.abandon(tx, job_id)

    def abandon(self, tx: WriteSession, job_id: str) -> None:
        """End a job whose dataset is gone, whoever holds it."""
        job = self._lock(tx, job_id)
        conditions = Job.status.not_in(repository.ENDED)
        self._end(tx, job, conditions, status="failed", error_code=JobError.DATASET_DELETED)

    def recover(self, tx: WriteSession, job_id: str) -> None:
        """Queue a job again whose worker has died, or end it: cancelled, or interrupted once too often."""
        job = self._lock(tx, job_id)
        lost = (Job.status == "running", repository.has_lapsed(moment(tx), self._lease))
        if job.cancel_requested:
            self._end(tx, job, *lost, status="cancelled")
        elif job.attempts - job.handovers >= MAX_ATTEMPTS:
            self._end(tx, job, *lost, status="failed", error_code=JobError.INTERRUPTED)
        else:
            self._requeue(tx, job_id, *lost)

    def find_lost(self, session: ReadSession) -> Sequence[str]:
        """Ids of the jobs that :meth:`recover` is for."""
        return repository.find_expired(session, moment(session), self._lease)

    def hand_over(self, tx: WriteSession, claim: Claim) -> bool:
        """Queue the attempt's job again at once, because its worker is being stopped; False if it cannot be.

        Then the lease runs out, and the attempt counts as lost.
        """
        conditions = (*_fence(claim), Job.handovers < MAX_HANDOVERS, Job.cancel_requested.is_(False))
        return self._requeue(tx, claim.job_id, *conditions, handovers=Job.handovers + 1)

    def remind(self, tx: WriteSession, job_id: str, queued_at: datetime) -> None:
        """Send a waiting job's id again: its message may be lost."""
        if repository.change(tx, job_id, Job.status == "queued", Job.queued_at == queued_at, queued_at=now()):
            self.enqueue(tx, job_id)

    def _requeue(self, tx: WriteSession, job_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
        back = {"status": "queued", "stage": Stage.QUEUED, "lease_until": None, "queued_at": now(), "steps_done": 0}
        if not repository.change(tx, job_id, *conditions, **back, **values):
            return False
        self.enqueue(tx, job_id)
        return True

    def _lock(self, tx: WriteSession, job_id: str) -> Job:
        """The job as it is once nobody else can change its dataset or account."""
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
