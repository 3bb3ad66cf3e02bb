"""Queries of releases."""

from collections.abc import Sequence

from sqlalchemy import or_, select

from app.datasets.models import Dataset, DatasetShare
from app.db import ReadSession
from app.releases.models import Release


def get(session: ReadSession, release_id: str) -> Release | None:
    return session.get(Release, release_id)


def find_by_job(session: ReadSession, job_id: str) -> Release | None:
    return session.scalars(select(Release).where(Release.job_id == job_id)).one_or_none()


def list_page(
    session: ReadSession,
    key_id: str | None,
    *,
    sees_all: bool,
    dataset_id: str | None,
    before: str | None,
    limit: int,
) -> Sequence[Release]:
    """List releases below the id ``before``, newest first.

    Without ``sees_all``, the list has public releases, and releases of datasets that ``key_id`` owns or may use.
    """
    query = select(Release).order_by(Release.id.desc()).limit(limit)
    if not sees_all:
        owned = select(Dataset.id).where(Dataset.owner_id == key_id)
        shared = select(DatasetShare.dataset_id).where(DatasetShare.key_id == key_id)
        readable = or_(Release.public, Release.dataset_id.in_(owned), Release.dataset_id.in_(shared))
        query = query.where(Release.public if key_id is None else readable)
    if dataset_id is not None:
        query = query.where(Release.dataset_id == dataset_id)
    if before is not None:
        query = query.where(Release.id < before)
    return session.scalars(query).all()
