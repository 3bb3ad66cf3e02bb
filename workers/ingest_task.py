"""Ingests a received content: claim it, parse it in a child process, then mark it ready or reject it."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.datasets import ingestion
from app.datasets.series import find_next
from app.db import Database
from app.errors import DependencyUnavailable, Internal, StateConflict
from app.jobs.lifecycle import Hold, Stage
from app.ledger import Ledger
from app.vault.areas import WorkerAreas
from app.vault.errors import ObjectMissing
from workers.enclave import Failed, Ingested, Limits, OpeningKey, Outcome, Rejected, StoredRegister, Upload, ingest
from workers.heartbeat import Heartbeat
from workers.run_task import Pace


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests contents by id.

    A message that arrives twice, late, or for an ended content has no effect.
    """

    database: Database
    ledger: Ledger
    areas: WorkerAreas
    opening_key: OpeningKey
    limits: Limits
    pace: Pace
    stopping: Callable[[], bool] = lambda: False

    def run(self, content_id: str) -> None:
        """Ingest the content if it can be claimed. A rejection or a failed attempt raises nothing.

        Then ingest the contents of its series that waited for it, one after the other.
        """
        waiting: str | None = content_id
        while waiting is not None and self._ingest_one(waiting):
            with self.database.read() as session:
                waiting = find_next(session, waiting)

    def _ingest_one(self, content_id: str) -> bool:
        """Ingest one content; return False if it cannot be claimed, or if the worker is being stopped."""
        with self.database.write() as tx:
            claim = ingestion.claim(tx, content_id, self.pace.lease_seconds)
        if claim is None:
            return False
        with Heartbeat(self._make_beat(claim), self.pace.heartbeat_seconds, self.pace.lease_seconds):
            outcome = self._ingest(claim)
        self._conclude(claim, outcome)
        structlog.get_logger().info("content ingested", content_id=content_id)
        return not self.stopping()

    def _ingest(self, claim: ingestion.Claim) -> Outcome:
        try:
            box = self.areas.keys.box(claim.dataset_id)
        except ObjectMissing:
            return Failed(transient=False)
        except DependencyUnavailable:
            return Failed(transient=True)
        membership = claim.membership
        earlier = () if membership is None else membership.earlier
        upload = Upload(
            parts=claim.original,
            digest_box=claim.sealed_digest,
            content_id=claim.content_id,
            media_type=claim.media_type,
            owner_id=claim.owner_id,
            dataset_id=claim.dataset_id,
            version=claim.version,
            dataset_box=box,
            facts_digest=claim.facts_digest,
            public=claim.facts.sensitivity == "public",
            series=None if membership is None else membership.name,
            earlier=tuple(StoredRegister(each.object_name, each.slots) for each in earlier),
        )
        try:
            areas = self.areas
            return ingest(
                areas.incoming,
                areas.vault,
                self.opening_key,
                upload,
                claim.facts,
                keys=areas.keys,
                limits=self.limits,
            )
        except DependencyUnavailable:
            return Failed(transient=True)

    def _conclude(self, claim: ingestion.Claim, outcome: Outcome) -> None:
        """Record the outcome in the database.

        A failed attempt is retried. It counts as an attempt unless the store caused the failure.
        """
        match outcome:
            case Ingested():
                self._mark_ready(claim, outcome)
            case Rejected(reason, columns):
                with self.database.write() as tx:
                    ingestion.reject(tx, claim, ingestion.Rejection(reason), columns)
            case Failed(transient):
                with self.database.write() as tx:
                    ingestion.postpone(tx, claim) if transient else ingestion.release(tx, claim, counted=True)

    def _mark_ready(self, claim: ingestion.Claim, ingested: Ingested) -> None:
        """Make the content ready, or reject or postpone it and delete its new objects.

        An error can arrive after the commit. So objects that the database may name are kept.
        """
        table = ingestion.StoredTable(
            ingested.table_object, ingested.wrapped_key, ingested.fingerprint, ingested.register_object
        )
        try:
            with self.database.write() as tx:
                used = ingestion.mark_ready(tx, self.ledger, claim, table) is ingestion.Outcome.READY
        except (StateConflict, Internal):  # the series or the ledger was altered; a retry would fail too
            with self.database.write() as tx:
                used = not ingestion.reject(tx, claim, ingestion.Rejection.SERIES_MISMATCH)
        except DependencyUnavailable:
            with self.database.write() as tx:
                used = not ingestion.postpone(tx, claim)
        if not used:
            for name in filter(None, (ingested.table_object, ingested.register_object)):
                self.areas.vault.delete(name)

    def _make_beat(self, claim: ingestion.Claim) -> Callable[[Stage, int], Hold]:
        def beat(_: Stage, __: int) -> Hold:
            with self.database.write() as tx:
                if self.stopping():  # another worker may start at once; if this one finishes first, its result counts
                    ingestion.release(tx, claim, counted=False)
                    return Hold.HANDED_OVER
                return Hold.HELD if ingestion.extend_lease(tx, claim) else Hold.LOST

        return beat
