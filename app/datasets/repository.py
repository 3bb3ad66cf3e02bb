"""Queries over datasets, shares and contents."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, delete, func, or_, select, update

from app.datasets.models import Content, Dataset, DatasetShare
from app.db import ReadSession, WriteSession


def get(session: ReadSession, dataset_id: str) -> Dataset | None:
    return session.get(Dataset, dataset_id)


def read_names(session: ReadSession, dataset_ids: Collection[str], visible_to: str | None = None) -> dict[str, str]:
    """Map the ids of datasets to their names, deleted ones included; ``visible_to`` as for :func:`list_page`."""
    query = restrict(select(Dataset).where(Dataset.id.in_(dataset_ids)), visible_to)
    return {row.id: row.name for row in session.execute(query.with_only_columns(Dataset.id, Dataset.name))}


def count_datasets(session: ReadSession, owner_id: str) -> int:
    """Count the owner's datasets that are not deleted."""
    query = select(func.count()).where(Dataset.owner_id == owner_id, Dataset.deleted_at.is_(None))
    return session.scalars(query).one()


def lock(tx: WriteSession, dataset_id: str) -> Dataset | None:
    """Return the dataset, locked until the transaction ends; contents change only under this lock."""
    query = select(Dataset).where(Dataset.id == dataset_id).with_for_update()
    return tx.scalars(query.execution_options(populate_existing=True)).one_or_none()


def list_page(session: ReadSession, visible_to: str | None, before: str | None, limit: int) -> Sequence[Dataset]:
    """Return datasets with ids below ``before``, newest first.

    ``visible_to`` restricts them to the key's own and shared ones; None means all.
    """
    query = restrict(select(Dataset).order_by(Dataset.id.desc()).limit(limit), visible_to)
    if before is not None:
        query = query.where(Dataset.id < before)
    return session.scalars(query).all()


def list_ready(session: ReadSession, visible_to: str | None, limit: int) -> Sequence[Dataset]:
    """Return datasets on which jobs can run, newest first; ``visible_to`` as for :func:`list_page`."""
    query = restrict(select(Dataset).order_by(Dataset.id.desc()).limit(limit), visible_to)
    has_table = select(Content.id).where(Content.dataset_id == Dataset.id, Content.status == "ready").exists()
    return session.scalars(query.where(Dataset.deleted_at.is_(None), has_table)).all()


def restrict(query: Select[Any], visible_to: str | None) -> Select[Any]:
    """Restrict a query over datasets to the visible ones of a key, as :func:`list_page`."""
    if visible_to is None:
        return query
    return query.where(or_(Dataset.owner_id == visible_to, Dataset.id.in_(_select_shared(visible_to))))


def _select_shared(key_id: str) -> ColumnElement[str]:
    shared = select(DatasetShare.dataset_id).where(DatasetShare.key_id == key_id)
    return shared.scalar_subquery()


def is_shared(session: ReadSession, dataset_id: str, key_id: str) -> bool:
    return session.get(DatasetShare, (dataset_id, key_id)) is not None


def list_shares(session: ReadSession, dataset_ids: Collection[str]) -> dict[str, list[str]]:
    """Map dataset ids to the sorted ids of the keys with access."""
    key_ids: dict[str, list[str]] = {dataset_id: [] for dataset_id in dataset_ids}
    query = select(DatasetShare).where(DatasetShare.dataset_id.in_(dataset_ids)).order_by(DatasetShare.key_id)
    for share in session.scalars(query):
        key_ids[share.dataset_id].append(share.key_id)
    return key_ids


def replace_shares(tx: WriteSession, dataset_id: str, key_ids: Iterable[str]) -> None:
    tx.execute(delete(DatasetShare).where(DatasetShare.dataset_id == dataset_id))
    tx.add_all(DatasetShare(dataset_id=dataset_id, key_id=key_id) for key_id in sorted(set(key_ids)))


def find_latest(session: ReadSession, dataset_ids: Collection[str], *, ready_only: bool = False) -> dict[str, Content]:
    """Map each dataset id to its newest content; with ``ready_only``, to the one in force."""
    newest = select(Content.dataset_id, func.max(Content.version).label("version"))
    newest = newest.where(Content.dataset_id.in_(dataset_ids)).group_by(Content.dataset_id)
    if ready_only:
        newest = newest.where(Content.status == "ready")
    top = newest.subquery()
    query = select(Content).join(top, (Content.dataset_id == top.c.dataset_id) & (Content.version == top.c.version))
    return {content.dataset_id: content for content in session.scalars(query)}


def find_in_force(session: ReadSession, dataset_id: str) -> Content | None:
    """Return the newest ready content, which jobs read."""
    return find_latest(session, [dataset_id], ready_only=True).get(dataset_id)


def list_contents(session: ReadSession, dataset_id: str) -> list[Content]:
    return list(session.scalars(select(Content).where(Content.dataset_id == dataset_id).order_by(Content.version)))


def forget_table(tx: WriteSession, content_id: str, table_object: str) -> None:
    """Clear the table's object name and key, after its object was deleted."""
    matching = update(Content).where(Content.id == content_id, Content.table_object == table_object)
    tx.execute(matching.values(table_object=None, wrapped_key=None))


def compute_next_version(tx: WriteSession, dataset_id: str) -> int:
    """Return the highest version plus one; call this under the dataset's lock."""
    highest = tx.scalar(select(func.max(Content.version)).where(Content.dataset_id == dataset_id))
    return (highest or 0) + 1


def list_half_deleted(session: ReadSession) -> Sequence[str]:
    """Return ids of deleted datasets without a receipt; their keys may still exist."""
    receipt = func.coalesce(cast(Dataset.deletion_receipt, String), "null")  # an absent one is stored as JSON's null
    return session.scalars(select(Dataset.id).where(Dataset.deleted_at.is_not(None), receipt == "null")).all()
