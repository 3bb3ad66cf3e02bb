"""Bytes that nothing needs any more: sealed originals of ended contents, tables of superseded and deleted ones.

The names stay in the rows until the bytes are gone, so whatever crashes in between is finished by the next sweep.
"""

from collections.abc import Callable

from sqlalchemy import and_, exists, or_, select
from sqlalchemy.orm import aliased

from app.datasets import repository
from app.datasets.models import Content, Dataset
from app.db import WriteSession
from app.vault.store import ObjectStore

BATCH = 20


def dispose_unneeded(tx: WriteSession, store: ObjectStore, pinned: Callable[[str], bool]) -> None:
    """Destroy what no job reads; ``pinned(content_id)`` says whether a job that has not ended holds a content.

    A deleted dataset's objects go whether or not they are pinned: its key is destroyed already.
    """
    newer, gone = aliased(Content), Dataset.deleted_at.is_not(None)
    superseded = exists().where(
        newer.dataset_id == Content.dataset_id, newer.status == "ready", newer.version > Content.version
    )
    original = and_(Content.upload_object.is_not(None), or_(Content.status != "received", gone))
    table = and_(Content.table_object.is_not(None), or_(superseded, gone))
    needless = select(Content, Dataset).join(Dataset).where(or_(original, table)).order_by(Content.id).limit(BATCH)
    for content, dataset in tx.execute(needless).all():
        _destroy_original(store, content)
        if content.table_object is not None and _destroyable(tx, content, dataset, pinned):
            _destroy_table(store, content)


def _destroyable(tx: WriteSession, content: Content, dataset: Dataset, pinned: Callable[[str], bool]) -> bool:
    if dataset.deleted_at is not None:
        return True
    repository.lock(tx, dataset.id)
    in_force = repository.in_force(tx, dataset.id)
    return in_force is not None and in_force.version > content.version and not pinned(content.id)


def _destroy_original(store: ObjectStore, content: Content) -> None:
    if content.upload_object is not None:
        store.delete(content.upload_object)
        content.upload_object = None


def _destroy_table(store: ObjectStore, content: Content) -> None:
    if content.table_object is not None:
        store.delete(content.table_object)
        content.table_object = content.wrapped_key = None
