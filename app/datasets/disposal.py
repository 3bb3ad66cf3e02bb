"""Deletion of stored objects that are not needed any more.

These objects are the sealed files of ended contents, the parts of lapsed uploads, and the tables of superseded and
deleted contents. Their keys are destroyed too.

One transaction selects the objects. They are then deleted outside of any transaction, because a store may be slow.
Another transaction clears their names. After a crash, the next sweep continues.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, Select, and_, exists, or_, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from app.datasets import repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.datasets.uploads.models import Upload, UploadPart
from app.db import Database, ReadSession, WriteSession, now
from app.vault.areas import WorkerAreas

BATCH = 20
MOST_PARTS = 500  # of one content in one sweep; the next sweep destroys the rest


@dataclass(frozen=True, slots=True)
class Disposal:
    """Destroys stored objects that no job reads.

    Args:
        areas: the stores of the objects.
        keep_superseded: how long a table is kept after a newer one has replaced it.
    """

    areas: WorkerAreas
    keep_superseded: timedelta = timedelta(0)
    _reached: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def keys(self, deleted: Iterable[str]) -> None:
        """Destroy the keys of datasets whose deletion was interrupted."""
        for dataset_id in deleted:
            self.areas.keys.destroy(dataset_id)

    def contents(self, database: Database, pinned: Callable[[ReadSession, str], bool]) -> None:
        """Destroy sealed files and tables that are not needed any more.

        ``pinned(session, content_id)`` returns whether an active job uses a content. The objects of a deleted dataset
        are destroyed even then, because its key is already destroyed.
        """
        for content_id, has_table in self._take_batch(database, self._select_disposable(), Content.id):
            self._destroy_parts(database, content_id)
            if has_table:
                self._destroy_table(database, content_id, pinned)

    def end_lapsed(self, database: Database) -> None:
        """End lapsed uploads and destroy their parts.

        An upload has lapsed if it was deleted by its owner, has expired, or belongs to a deleted dataset.
        """
        for (upload_id,) in self._take_batch(database, uploads.select_lapsed(now()), Upload.id):
            with database.write() as tx:
                content_id = _end(tx, upload_id)
            if content_id is not None and self._destroy_parts(database, content_id):
                with database.write() as tx:
                    uploads.forget(tx, upload_id)

    def _take_batch(
        self, database: Database, query: Select[*tuple[Any, ...]], identifier: InstrumentedAttribute[str]
    ) -> Iterator[Row[*tuple[Any, ...]]]:
        """Yield up to ``BATCH`` database rows, ordered by id.

        They follow the last row of the previous sweep; after the last row of all, the first rows follow again. So rows
        whose objects cannot be destroyed now do not block later rows. The reason may be a job or a failing store.
        """
        kind = identifier.class_.__name__
        ordered = query.order_by(identifier).limit(BATCH)
        with database.read() as session:
            following = ordered.where(identifier > self._reached.get(kind, ""))
            batch = session.execute(following).all() or session.execute(ordered).all()
        for row in batch:
            self._reached[kind] = row[0]
            yield row

    def _select_disposable(self) -> Select[str, bool]:
        """Select contents with objects to destroy, and whether the table is one of them."""
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
        return select(Content.id, table).join(Dataset).where(or_(original, table))

    def _destroy_parts(self, database: Database, content_id: str) -> bool:
        """Destroy up to ``MOST_PARTS`` parts; return whether none remain."""
        with database.read() as session:
            names = [part.object_name for part in uploads.list_objects(session, [content_id], MOST_PARTS)]
        for name in names:
            self.areas.keys.destroy_part(name)
            self.areas.incoming.delete(name)
        if names:
            with database.write() as tx:
                uploads.forget_objects(tx, names)
        return len(names) < MOST_PARTS

    def _destroy_table(self, database: Database, content_id: str, pinned: Callable[[ReadSession, str], bool]) -> None:
        with database.write() as tx:
            name = _find_disposable_table(tx, content_id, pinned)
        if name is not None:
            self.areas.vault.delete(name)
            with database.write() as tx:
                repository.forget_table(tx, content_id, name)


def _end(tx: WriteSession, upload_id: str) -> str | None:
    """End a lapsed upload; return the content id of its parts if they may be destroyed now.

    The parts of a complete upload belong to its content, so only the upload's database row is deleted.
    """
    upload = uploads.lock(tx, upload_id)
    if upload is None:
        return None
    if upload.status == "complete":
        tx.delete(upload)
        return None
    upload.status = "ended"
    arriving = upload.lease_until is not None and upload.lease_until > now()
    return None if arriving else upload.content_id  # an arriving part stops first


def _find_disposable_table(tx: WriteSession, content_id: str, pinned: Callable[[ReadSession, str], bool]) -> str | None:
    """Return the name of the content's table; None if a job may read it.

    This locks the dataset. A job pins only the content in force, and only while it holds the same lock. So no job can
    pin a superseded content after this check.
    """
    content = tx.get_one(Content, content_id)
    dataset = repository.lock(tx, content.dataset_id)
    if dataset is not None and dataset.deleted_at is None:
        in_force = repository.find_in_force(tx, dataset.id)
        if in_force is None or in_force.version <= content.version or pinned(tx, content.id):
            return None
    return content.table_object
