"""Runs a job: claims it, opens its reservation, computes, then settles and publishes.

A job gets a further attempt in two cases. If its worker dies or cannot renew the lease, the sweeper queues the job
again after the lease has expired. If its worker is being stopped, it hands the job over. The next attempt destroys the
objects of earlier ones.

An exception in an attempt is final. A run that takes more time or memory than the limits of its plan is stopped, and
that is final too. Then the job has failed, and only its error code is published. It is charged if its reservation was
opened.
"""

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import structlog

from app import crashpoints
from app.datasets.facts import make_declared_facts
from app.datasets.models import Content, Dataset
from app.db import Database, WriteSession
from app.errors import Internal
from app.inference.core import plan_json
from app.inference.core.release import Released
from app.jobs.lifecycle import Claim, Hold, JobError, Lifecycle, Stage, is_accounted
from app.jobs.models import Job
from app.ledger import Cause, Ledger, Registration
from app.privacy.events import PrivacyEvent
from app.releases import repository as releases
from app.releases.publication import Draft, Publisher
from app.releases.statement import Standing
from app.tracing import open_span
from app.vault.errors import ObjectMissing
from app.vault.wrapped_keys import WrappedKeys
from workers.assignments import Assignment, OpenTable, make_assignment, read_run
from workers.computation import EnclaveFault, compute, dry_run_plan
from workers.heartbeat import Heartbeat, Stopped
from workers.run_limits import RunLimits, compute_run_limits
from workers.split_queries.coordinator import Sharing


@dataclass(frozen=True, slots=True)
class Pace:
    """The duration of a lease without a heartbeat, and the time between heartbeats."""

    lease_seconds: float = 10.0
    heartbeat_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The conditions that end a run early.

    Attributes:
        scale: the factor by which the limits of time and memory are multiplied.
        confine: makes a context that enforces the hard limits on this process.
        stopping: returns whether this worker is being stopped.
    """

    scale: float = 1.0
    confine: Callable[[RunLimits], AbstractContextManager[None]] = lambda _: nullcontext()
    stopping: Callable[[], bool] = lambda: False


class KeyDestroyed(Exception):
    """The dataset's key does not exist, because the dataset was deleted.

    The database may still list the dataset if it was restored from an older backup.
    """


class Altered(Exception):
    """The database's records of the job, dataset or content changed during the run."""


class Runner:
    """Runs jobs by id.

    A message has no effect if it arrives twice or too late, or if the job has ended.
    """

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        lifecycle: Lifecycle,
        *,
        publisher: Publisher,
        keys: WrappedKeys,
        tables: OpenTable,
        sharing: Sharing,
        pace: Pace,
        bounds: Bounds | None = None,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._lifecycle = lifecycle
        self._publisher = publisher
        self._keys = keys
        self._tables = tables
        self._sharing = sharing
        self._pace = pace
        self._bounds = bounds or Bounds()

    def run(self, job_id: str) -> None:
        """Run the job if it can be claimed. A failure of the run is recorded, not raised."""
        with self._database.write() as tx:
            claim = self._lifecycle.claim(tx, job_id)
        if claim is None:
            return
        with open_span("job", claim.trace, job_id=job_id, attempt=claim.attempt, request_id=claim.request_id):
            self._run(claim)

    def _run(self, claim: Claim) -> None:
        log = structlog.get_logger().bind(job_id=claim.job_id, attempt=claim.attempt, request_id=claim.request_id)
        log.info("job claimed")
        try:
            with self.heartbeat(claim) as heartbeat:
                self._carry_through(claim, heartbeat)
        except Stopped as stopped:
            self._stop(claim, stopped.hold)
            log.info("job stopped", hold=str(stopped.hold))
        except KeyDestroyed:
            with self._database.write() as tx:
                self._lifecycle.fail(tx, claim, JobError.DATASET_DELETED)
            log.info("job failed", code=str(JobError.DATASET_DELETED))
        except Exception as error:  # noqa: BLE001  (a final failure; only its code may be published)
            self._fail(claim, _find_freeze_cause(error))
            log.error("job failed", code=str(JobError.RUN_FAILED))
        else:
            crashpoints.reach("after-publish")
            log.info("job succeeded")

    def heartbeat(self, claim: Claim) -> Heartbeat:
        """Make the heartbeat that renews the claim during the run."""
        pace = self._pace
        return Heartbeat(self._make_beat(claim), pace.heartbeat_seconds, pace.lease_seconds, self._bounds.stopping)

    def _carry_through(self, claim: Claim, heartbeat: Heartbeat) -> None:
        self._clear(claim)
        assignment = self._open(claim)
        if assignment.is_accounted:
            with self._database.write() as tx:
                self._ledger.checkpoint(tx, assignment.run.dataset_id)
        crashpoints.reach("after-open")
        limits = compute_run_limits(assignment.run.plan, assignment.run.facts, self._bounds.scale)
        heartbeat.set_limits(limits, lambda: self._kill_process(claim))
        with self._bounds.confine(limits):
            points, executed = self._compute(assignment, heartbeat)
            if executed != assignment.run.plan.events:
                raise Internal
            heartbeat.enter(Stage.PUBLISHING)
            draft = self._publisher.store(assignment.run, claim.fencing_token, points)
        crashpoints.reach("before-publish")
        self._publish(assignment, draft, executed)

    def _compute(self, assignment: Assignment, heartbeat: Heartbeat) -> tuple[Released, tuple[PrivacyEvent, ...]]:
        def on_step(done: int) -> None:
            crashpoints.reach("mid-iteration")
            heartbeat.step(done)

        heartbeat.enter(Stage.RUNNING)
        run = assignment.run
        with open_span("job.run"), self._tables(assignment) as rows, self._sharing.share(assignment, rows) as summation:
            return compute(run.plan, run.facts, rows, on_step, summation)

    def _kill_process(self, claim: Claim) -> None:
        """End the job as failed and kill this process.

        The run has exceeded its hard limits. The heartbeat's thread calls this, because the thread of the run may not
        respond.
        """
        structlog.get_logger().error("job over its hard limits", job_id=claim.job_id, attempt=claim.attempt)
        try:
            with self._database.write() as tx:
                self._lifecycle.fail(tx, claim, JobError.RUN_FAILED)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)

    def _clear(self, claim: Claim) -> None:
        """Destroy the objects that earlier attempts may have stored before their processes died."""
        for token in range(1, claim.fencing_token):
            self._publisher.discard(claim.job_id, token)
            self._sharing.clear(claim.job_id, token)

    def _open(self, claim: Claim) -> Assignment:
        """Check the job, then open its reservation.

        When the transaction that opens it has committed, the job is charged, even if it fails or is cancelled later.

        Raises:
            Internal: the content is not registered in its series. The job is not charged.
        """
        box = self._read_dataset_box(claim)
        with self._database.write() as tx:
            self._lifecycle.check_terms(tx, claim)
        self._dry_run_plan(claim)
        with open_span("job.open"), self._database.write() as tx:
            job = self._lifecycle.open(tx, claim)
            assignment = None if job is None else make_assignment(tx, claim, job, box)
            if assignment is not None and assignment.is_accounted:
                self._find_registration(tx, assignment)  # without one, this transaction opens nothing
        if assignment is None:
            raise Stopped(Hold.LOST)
        return assignment

    def _read_dataset_box(self, claim: Claim) -> bytes:
        """Read the box with the dataset's key, before anything is charged.

        Raises:
            KeyDestroyed: there is no box, because the dataset was deleted.
        """
        with self._database.read() as session:
            dataset_id = session.get_one(Job, claim.job_id).dataset_id
        try:
            return self._keys.box(dataset_id)
        except ObjectMissing:
            raise KeyDestroyed from None

    def _dry_run_plan(self, claim: Claim) -> None:
        """Dry-run the job's plan, because another version may have made it.

        If this fails, the job has failed without a charge.
        """
        with self._database.read() as session:
            job = session.get_one(Job, claim.job_id)
            facts = make_declared_facts(session.get_one(Dataset, job.dataset_id), job.cost_delta)
            plan = plan_json.from_json(job.plan)
        dry_run_plan(plan, facts)

    def _publish(self, assignment: Assignment, draft: Draft, executed: tuple[PrivacyEvent, ...]) -> None:
        """Settle the charge, publish the release and end the job, in one transaction."""
        claim, dataset_id = assignment.claim, assignment.run.dataset_id
        with open_span("job.publish"), self._database.write() as tx:
            hold = self._lifecycle.settle(tx, claim, executed)
            if hold is Hold.HELD:
                self._compare(tx, assignment)
                public = tx.get_one(Dataset, dataset_id).releases_public
                standing = self._read_standing(tx, assignment) if assignment.is_accounted else None
                release = self._publisher.publish(tx, draft, standing, public=public)
                self._lifecycle.finish(tx, claim, release.id)
        if hold is not Hold.HELD:
            raise Stopped(hold)

    def _compare(self, tx: WriteSession, assignment: Assignment) -> None:
        """Raise ``Altered`` if the database now describes a different run."""
        job = tx.get_one(Job, assignment.claim.job_id)
        dataset, content = tx.get_one(Dataset, job.dataset_id), tx.get_one(Content, job.content_id)
        if read_run(job, dataset, content) != assignment.run:
            raise Altered

    def _read_standing(self, tx: WriteSession, assignment: Assignment) -> Standing:
        """Read the account as the certificate states it.

        Raises:
            Internal: as :meth:`_find_registration`.
        """
        dataset_id = assignment.run.dataset_id
        checkpoint = self._ledger.checkpoint(tx, dataset_id)
        registration = self._find_registration(tx, assignment)
        return Standing(self._ledger.guarantee(tx, dataset_id), checkpoint, registration)

    def _find_registration(self, tx: WriteSession, assignment: Assignment) -> Registration | None:
        """Find the ledger's registration of the content; None without a series. The account must be verified.

        Raises:
            Internal: the content of a dataset in a series is not registered, or not in this series.
        """
        dataset_id, register = assignment.run.dataset_id, assignment.register_object
        registration = None if register is None else self._ledger.registration(tx, dataset_id, register)
        named = None if registration is None else registration.series
        if named != tx.get_one(Dataset, dataset_id).series:
            raise Internal
        return registration

    def _stop(self, claim: Claim, hold: Hold) -> None:
        if hold is Hold.CANCELLED:
            with self._database.write() as tx:
                self._lifecycle.end_cancelled(tx, claim)
        self._discard_unpublished(claim)
        if hold is Hold.HANDED_OVER:
            with self._database.write() as tx:
                self._lifecycle.hand_over(tx, claim)

    def _fail(self, claim: Claim, cause: Cause | None) -> None:
        """End the job as failed, and freeze its account if there is a ``cause``."""
        with self._database.write() as tx:
            self._lifecycle.fail(tx, claim, JobError.RUN_FAILED)
            job = tx.get_one(Job, claim.job_id)
            if cause is not None and is_accounted(job):
                self._ledger.freeze(tx, job.dataset_id, cause)
        self._discard_unpublished(claim)

    def _discard_unpublished(self, claim: Claim) -> None:
        """Destroy the objects of this attempt, unless the database has its release.

        After an exception the release exists if the commit succeeded but the database's reply to it was lost.
        """
        with self._database.read() as session:
            release = releases.find_by_job(session, claim.job_id)
        if release is None or not self._publisher.owns(release, claim.fencing_token):
            self._publisher.discard(claim.job_id, claim.fencing_token)

    def _make_beat(self, claim: Claim) -> Callable[[Stage, int], Hold]:
        def beat(stage: Stage, steps_done: int) -> Hold:
            with self._database.write() as tx:
                return self._lifecycle.heartbeat(tx, claim, stage=stage, steps_done=steps_done)

        return beat


def _find_freeze_cause(error: Exception) -> Cause | None:
    """Return why an account is frozen after ``error``; None for an error that follows from the plan alone."""
    if isinstance(error, EnclaveFault):  # private rows may have caused it
        return Cause.RUN
    return Cause.MISMATCH if isinstance(error, Altered) else None
