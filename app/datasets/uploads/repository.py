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
    """The upload, locked until the transaction ends; lock its dataset first."""
    query = select(Upload).where(Upload.id == upload_id).with_for_update()
    return tx.scalars(query.execution_options(populate_existing=True)).one_or_none()


def open_of(session: ReadSession, owner_id: str, moment: datetime) -> Sequence[str]:
    """The ids of uploads that the owner has under way, newest first."""
    query = select(Upload.id).where(Upload.owner_id == owner_id, *_under_way(moment))
    return session.scalars(query.order_by(Upload.id.desc())).all()


def page(session: ReadSession, dataset_id: str, moment: datetime, before: str | None, limit: int) -> Sequence[Upload]:
    """Uploads to a dataset that are under way, newest first, below ``before``."""
    query = select(Upload).where(Upload.dataset_id == dataset_id, *_under_way(moment))
    if before is not None:
        query = query.where(Upload.id < before)
    return session.scalars(query.order_by(Upload.id.desc()).limit(limit)).all()


def _under_way(moment: datetime) -> tuple[ColumnElement[bool], ...]:
    return Upload.status == "open", Upload.expires_at > moment


def parts(session: ReadSession, content_id: str) -> Sequence[UploadPart]:
    """The parts of a content in their order."""
    kept = select(UploadPart).where(UploadPart.content_id == content_id, UploadPart.number.is_not(None))
    return session.scalars(kept.order_by(UploadPart.number)).all()


def objects(session: ReadSession, content_ids: Sequence[str], limit: int | None = None) -> Sequence[UploadPart]:
    """Whatever is stored for contents, kept or still arriving."""
    return session.scalars(select(UploadPart).where(UploadPart.content_id.in_(content_ids)).limit(limit)).all()


def objects_of(session: ReadSession, dataset_id: str) -> Sequence[UploadPart]:
    """Whatever is stored for a dataset's contents and uploads, ended ones included."""
    contents = select(Content.id).where(Content.dataset_id == dataset_id)
    under_way = select(Upload.content_id).where(Upload.dataset_id == dataset_id)
    query = select(UploadPart).where(UploadPart.content_id.in_(contents.union(under_way)))
    return session.scalars(query.order_by(UploadPart.object_name)).all()


def forget_objects(tx: WriteSession, object_names: Sequence[str]) -> None:
    tx.execute(delete(UploadPart).where(UploadPart.object_name.in_(object_names)))


def forget(tx: WriteSession, upload_id: str) -> None:
    tx.execute(delete(Upload).where(Upload.id == upload_id))


def of_dataset(session: ReadSession, dataset_id: str) -> Sequence[Upload]:
    """The uploads of a dataset that have not ended."""
    return session.scalars(select(Upload).where(Upload.dataset_id == dataset_id, Upload.status == "open")).all()


def select_lapsed(moment: datetime) -> Select[str]:
    """The ids of uploads that ended, have expired, or belong to a deleted dataset."""
    gone = Upload.dataset_id.in_(select(Dataset.id).where(Dataset.deleted_at.is_not(None)))
    over = or_(Upload.status == "ended", Upload.expires_at < moment, gone)
    return select(Upload.id).where(over)
