"""Bytes that nothing needs any more: sealed originals of ended contents, parts of uploads that lapsed, tables of
superseded and deleted contents, keys of deleted datasets.

The names stay in the rows until the bytes are gone, so whatever crashes in between is finished by the next sweep.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import and_, exists, or_, select
from sqlalchemy.orm import aliased

from app.datasets import repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.datasets.uploads.models import UploadPart
from app.db import WriteSession, now
from app.vault.areas import WorkerAreas

BATCH = 20
MOST_PARTS = 500  # that one sweep destroys of one content: the rest are the next one's


@dataclass(frozen=True, slots=True)
class Disposal:
    """Destroys what no job reads.

    Args:
        areas: where it lies.
        keep_superseded: how long a table stays after a newer one took its place.
    """

    areas: WorkerAreas
    keep_superseded: timedelta = timedelta(0)

    def keys(self, deleted: Iterable[str]) -> None:
        """Destroy the keys of datasets whose deletion was cut short."""
        for dataset_id in deleted:
            self.areas.keys.destroy(dataset_id)

    def contents(self, tx: WriteSession, pinned: Callable[[str], bool]) -> None:
        """Destroy needless bytes; ``pinned(content_id)`` says whether a job that has not ended holds a content.

        A deleted dataset's objects go whether or not they are pinned: its key is destroyed already.
        """
        newer, gone = aliased(Content), Dataset.deleted_at.is_not(None)
        superseded = exists().where(
            newer.dataset_id == Content.dataset_id,
            newer.status == "ready",
            newer.version > Content.version,
            newer.ended_at <= now() - self.keep_superseded,
        )
        stored = exists().where(UploadPart.content_id == Content.id)
        original = and_(stored, or_(Content.status != "received", gone))
        table = and_(Content.table_object.is_not(None), or_(superseded, gone))
        needless = select(Content, Dataset, table).join(Dataset).where(or_(original, table))
        for content, dataset, is_table in tx.execute(needless.order_by(Content.id).limit(BATCH)).all():
            self._destroy_parts(tx, content.id)
            if is_table and _destroyable(tx, content, dataset, pinned):
                self._destroy_table(content)

    def lapsed(self, tx: WriteSession) -> None:
        """End uploads that were given up, have expired, or belong to a deleted dataset, with all stored for them.

        What became a content is the content's.
        """
        moment = now()
        for upload in uploads.lapsed(tx, moment, BATCH):
            if upload.status == "complete":
                tx.delete(upload)
            elif upload.lease_until is not None and upload.lease_until > moment:
                upload.status = "ended"  # its part notices, and goes first
            elif self._destroy_parts(tx, upload.content_id):
                tx.delete(upload)

    def _destroy_parts(self, tx: WriteSession, content_id: str) -> bool:
        """Whether nothing is left."""
        parts = uploads.objects(tx, [content_id], MOST_PARTS)
        for part in parts:
            self.areas.incoming.delete(part.object_name)
            tx.delete(part)
        return len(parts) < MOST_PARTS

    def _destroy_table(self, content: Content) -> None:
        if content.table_object is not None:
            self.areas.vault.delete(content.table_object)
            content.table_object = content.wrapped_key = None


def _destroyable(tx: WriteSession, content: Content, dataset: Dataset, pinned: Callable[[str], bool]) -> bool:
    if dataset.deleted_at is not None:
        return True
    repository.lock(tx, dataset.id)
    in_force = repository.in_force(tx, dataset.id)
    return in_force is not None and in_force.version > content.version and not pinned(content.id)
