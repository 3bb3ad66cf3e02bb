"""Bytes that nothing needs any more: sealed originals of ended contents, parts of uploads that lapsed, tables of
superseded and deleted contents, keys of all these.

A transaction decides what goes (and it is never needed again), the bytes go outside of any, since a store may take its
time, and a last transaction forgets their names: whatever crashes in between is finished by the next sweep.
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
    _reached: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def keys(self, deleted: Iterable[str]) -> None:
        """Destroy the keys of datasets whose deletion was cut short."""
        for dataset_id in deleted:
            self.areas.keys.destroy(dataset_id)

    def contents(self, database: Database, pinned: Callable[[ReadSession, str], bool]) -> None:
        """Destroy needless bytes; ``pinned(session, content_id)`` says whether a job that goes on holds a content.

        A deleted dataset's objects go whether or not they are pinned: its key is destroyed already.
        """
        for content_id, has_table in self._in_turn(database, self._needless(), Content.id):
            self._destroy_parts(database, content_id)
            if has_table:
                self._destroy_table(database, content_id, pinned)

    def end_lapsed(self, database: Database) -> None:
        """End uploads that were given up, have expired, or belong to a deleted dataset, with all stored for them."""
        for (upload_id,) in self._in_turn(database, uploads.select_lapsed(now()), Upload.id):
            with database.write() as tx:
                content_id = _end(tx, upload_id)
            if content_id is not None and self._destroy_parts(database, content_id):
                with database.write() as tx:
                    uploads.forget(tx, upload_id)

    def _in_turn(
        self, database: Database, query: Select[*tuple[Any, ...]], identifier: InstrumentedAttribute[str]
    ) -> Iterator[Row[*tuple[Any, ...]]]:
        """Up to ``BATCH`` rows, by their ids, behind where the last sweep ended (or was cut short by an error).

        So those that stay, because a job holds them or the store refuses, never keep others from their turn.
        """
        kind = identifier.class_.__name__
        ordered = query.order_by(identifier).limit(BATCH)
        with database.read() as session:
            behind = ordered.where(identifier > self._reached.get(kind, ""))
            found = session.execute(behind).all() or session.execute(ordered).all()
        for row in found:
            self._reached[kind] = row[0]
            yield row

    def _needless(self) -> Select[str, bool]:
        """Contents of which something may go, and whether that is a table."""
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
        """Whether nothing is left."""
        with database.read() as session:
            names = [part.object_name for part in uploads.objects(session, [content_id], MOST_PARTS)]
        for name in names:
            self.areas.keys.destroy_part(name)
            self.areas.incoming.delete(name)
        if names:
            with database.write() as tx:
                uploads.forget_objects(tx, names)
        return len(names) < MOST_PARTS

    def _destroy_table(self, database: Database, content_id: str, pinned: Callable[[ReadSession, str], bool]) -> None:
        with database.write() as tx:
            name = _destroyable(tx, content_id, pinned)
        if name is not None:
            self.areas.vault.delete(name)
            with database.write() as tx:
                repository.forget_table(tx, content_id, name)


def _end(tx: WriteSession, upload_id: str) -> str | None:
    """End an upload that has lapsed; the content that its parts were for, once none arrives any more.

    What became a content is the content's: of that only the upload goes.
    """
    upload = uploads.lock(tx, upload_id)
    if upload is None:
        return None
    if upload.status == "complete":
        tx.delete(upload)
        return None
    upload.status = "ended"
    arriving = upload.lease_until is not None and upload.lease_until > now()
    return None if arriving else upload.content_id  # a part that arrives notices, and goes first


def _destroyable(tx: WriteSession, content_id: str, pinned: Callable[[ReadSession, str], bool]) -> str | None:
    """The name of a table that nobody will ever read again: only what is in force is pinned, and under this lock."""
    content = tx.get_one(Content, content_id)
    dataset = repository.lock(tx, content.dataset_id)
    if dataset is not None and dataset.deleted_at is None:
        in_force = repository.in_force(tx, dataset.id)
        if in_force is None or in_force.version <= content.version or pinned(tx, content.id):
            return None
    return content.table_object
