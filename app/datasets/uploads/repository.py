"""Queries over uploads and their parts."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, delete, or_, select

from app.datasets.models import Content, Dataset
from app.datasets.uploads.models import Upload, UploadPart
from app.db import ReadSession, WriteSession


def get(session: ReadSession, upload_id: str) -> Upload | None:
    return session.get(Upload, upload_id)


def lock(tx: WriteSession, upload_id: str) -> Upload | None:
    """Lock an upload until the transaction ends; lock its dataset first."""
    query = select(Upload).where(Upload.id == upload_id).with_for_update()
    return tx.scalars(query.execution_options(populate_existing=True)).one_or_none()


def list_open_ids(session: ReadSession, owner_id: str, moment: datetime) -> Sequence[str]:
    """List the ids of an owner's open uploads, newest first."""
    query = select(Upload.id).where(Upload.owner_id == owner_id, *_is_open(moment))
    return session.scalars(query.order_by(Upload.id.desc())).all()


def list_page(
    session: ReadSession, dataset_id: str, moment: datetime, before: str | None, limit: int
) -> Sequence[Upload]:
    """List open uploads to a dataset, newest first, with ids below ``before``."""
    query = select(Upload).where(Upload.dataset_id == dataset_id, *_is_open(moment))
    if before is not None:
        query = query.where(Upload.id < before)
    return session.scalars(query.order_by(Upload.id.desc()).limit(limit)).all()


def _is_open(moment: datetime) -> tuple[ColumnElement[bool], ...]:
    return Upload.status == "open", Upload.expires_at > moment


def list_parts(session: ReadSession, content_id: str) -> Sequence[UploadPart]:
    """List the parts of a content in their order."""
    query = select(UploadPart).where(UploadPart.content_id == content_id, UploadPart.number.is_not(None))
    return session.scalars(query.order_by(UploadPart.number)).all()


def list_objects(session: ReadSession, content_ids: Sequence[str], limit: int | None = None) -> Sequence[UploadPart]:
    """List the objects of contents, including parts that still arrive."""
    return session.scalars(select(UploadPart).where(UploadPart.content_id.in_(content_ids)).limit(limit)).all()


def list_dataset_objects(session: ReadSession, dataset_id: str) -> Sequence[UploadPart]:
    """List the objects of a dataset's contents and uploads, including ended uploads."""
    contents = select(Content.id).where(Content.dataset_id == dataset_id)
    of_uploads = select(Upload.content_id).where(Upload.dataset_id == dataset_id)
    query = select(UploadPart).where(UploadPart.content_id.in_(contents.union(of_uploads)))
    return session.scalars(query.order_by(UploadPart.object_name)).all()


def forget_objects(tx: WriteSession, object_names: Sequence[str]) -> None:
    tx.execute(delete(UploadPart).where(UploadPart.object_name.in_(object_names)))


def forget(tx: WriteSession, upload_id: str) -> None:
    tx.execute(delete(Upload).where(Upload.id == upload_id))


def list_dataset_uploads(session: ReadSession, dataset_id: str) -> Sequence[Upload]:
    """List the open uploads of a dataset, including expired ones."""
    return session.scalars(select(Upload).where(Upload.dataset_id == dataset_id, Upload.status == "open")).all()


def select_lapsed(moment: datetime) -> Select[str]:
    """Select the ids of uploads that ended or expired, or whose dataset is deleted."""
    is_deleted = Upload.dataset_id.in_(select(Dataset.id).where(Dataset.deleted_at.is_not(None)))
    is_lapsed = or_(Upload.status == "ended", Upload.expires_at < moment, is_deleted)
    return select(Upload.id).where(is_lapsed)
