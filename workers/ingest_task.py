"""Carries a received content into the vault: claim, parse in the enclave's child, put in force or reject."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from app.datasets import ingestion
from app.db import Database
from app.errors import DependencyUnavailable
from app.jobs.lifecycle import Hold, Stage
from app.ledger import Ledger
from app.vault.areas import WorkerAreas
from app.vault.errors import ObjectMissing
from workers.enclave import Failed, Ingested, Limits, OpeningKey, Outcome, Rejected, Upload, ingest
from workers.heartbeat import Heartbeat
from workers.run_task import Pace


@dataclass(frozen=True, slots=True)
class Ingestion:
    """Ingests contents by id. A message that comes twice, late, or for an ended content does nothing."""

    database: Database
    ledger: Ledger
    areas: WorkerAreas
    opening_key: OpeningKey
    limits: Limits
    pace: Pace
    stopping: Callable[[], bool] = lambda: False

    def run(self, content_id: str) -> None:
        """Ingest the content if it is there to be taken; returns however it ends."""
        with self.database.write() as tx:
            held = ingestion.claim(tx, content_id, self.pace.lease_seconds)
        if held is None:
            return
        with Heartbeat(self._beat(held), self.pace.heartbeat_seconds, self.pace.lease_seconds):
            outcome = self._ingest(held)
        self._conclude(held, outcome)
        structlog.get_logger().info("content ingested", content_id=content_id)

    def _ingest(self, held: ingestion.Claim) -> Outcome:
        try:
            box = self.areas.keys.box(held.dataset_id)
        except ObjectMissing:
            return Failed(transient=False)
        except DependencyUnavailable:
            return Failed(transient=True)
        upload = Upload(
            parts=held.original,
            digest_box=held.sealed_digest,
            content_id=held.content_id,
            media_type=held.media_type,
            owner_id=held.owner_id,
            dataset_id=held.dataset_id,
            version=held.version,
            dataset_box=box,
            facts_digest=held.facts_digest,
            public=held.facts.sensitivity == "public",
        )
        try:
            areas = self.areas
            return ingest(
                areas.incoming,
                areas.vault,
                self.opening_key,
                upload,
                held.facts,
                keys=areas.keys,
                limits=self.limits,
            )
        except DependencyUnavailable:
            return Failed(transient=True)

    def _conclude(self, held: ingestion.Claim, outcome: Outcome) -> None:
        """What failed without the file being known to be at fault is tried again; it counts unless the store did it."""
        match outcome:
            case Ingested():
                self._put_in_force(held, outcome)
            case Rejected(reason, columns):
                with self.database.write() as tx:
                    ingestion.reject(tx, held, ingestion.Rejection(reason), columns)
            case Failed(transient):
                with self.database.write() as tx:
                    ingestion.postpone(tx, held) if transient else ingestion.release(tx, held, counted=True)

    def _put_in_force(self, held: ingestion.Claim, ingested: Ingested) -> None:
        table = ingestion.StoredTable(ingested.table_object, ingested.wrapped_key, ingested.fingerprint)
        with self.database.write() as tx:
            outcome = ingestion.mark_ready(tx, self.ledger, held, table)
        if outcome is not ingestion.Outcome.READY:
            self.areas.vault.delete(ingested.table_object)

    def _beat(self, held: ingestion.Claim) -> Callable[[Stage, int], Hold]:
        def beat(_: Stage, __: int) -> Hold:
            with self.database.write() as tx:
                if self.stopping():  # others may begin anew at once; should this worker finish before, that counts
                    ingestion.release(tx, held, counted=False)
                    return Hold.HANDED_OVER
                return Hold.HELD if ingestion.heartbeat(tx, held) else Hold.LOST

        return beat
