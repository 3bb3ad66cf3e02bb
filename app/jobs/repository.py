"""Queries over jobs. Every change of state is one conditional UPDATE: whoever it does not match has lost."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, exists, func, or_, select, update

from app.datasets.models import Dataset
from app.db import ReadSession, WriteSession
from app.jobs.models import Job

ENDED = ("succeeded", "failed", "cancelled")


def get(session: ReadSession, job_id: str) -> Job | None:
    """The job as the database has it now."""
    return session.get(Job, job_id, populate_existing=True)


def change(tx: WriteSession, job_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
    """Set ``values`` where ``conditions`` hold; False if they do not (any more)."""
    statement = update(Job).where(Job.id == job_id, *conditions).values(**values).returning(Job.id)
    return tx.execute(statement, execution_options={"synchronize_session": False}).one_or_none() is not None


def page(
    session: ReadSession,
    visible_to: str | None,
    *,
    dataset_id: str | None,
    status: str | None,
    before: str | None,
    limit: int,
) -> Sequence[Job]:
    """Newest first, below ``before``; all jobs when ``visible_to`` is None, else own ones and those on own data."""
    query = select(Job).order_by(Job.id.desc()).limit(limit)
    if visible_to is not None:
        owned = select(Dataset.id).where(Dataset.owner_id == visible_to)
        query = query.where(or_(Job.caller_id == visible_to, Job.dataset_id.in_(owned)))
    if dataset_id is not None:
        query = query.where(Job.dataset_id == dataset_id)
    if status is not None:
        query = query.where(Job.status == status)
    if before is not None:
        query = query.where(Job.id < before)
    return session.scalars(query).all()


def find_unended(session: ReadSession, dataset_id: str) -> Sequence[str]:
    """Ids of the dataset's jobs that have not ended."""
    return session.scalars(select(Job.id).where(Job.dataset_id == dataset_id, Job.status.not_in(ENDED))).all()


def count_active(session: ReadSession, caller_id: str) -> int:
    """The caller's jobs that wait or run."""
    query = select(func.count()).where(Job.caller_id == caller_id, Job.status.not_in(ENDED))
    return session.scalars(query).one()


def find_untidied(session: ReadSession) -> Sequence[Job]:
    """Jobs that have ended, of whose attempts something may be left."""
    return session.scalars(select(Job).where(Job.tidied.is_(False), Job.status.in_(ENDED))).all()


def has_lapsed(moment: datetime, lease: timedelta) -> ColumnElement[bool]:
    """Whether a lease has run out, or was granted before the clock was set back. Live ones are renewed in time."""
    return or_(Job.lease_until < moment, Job.lease_until > moment + 2 * lease)


def find_expired(session: ReadSession, moment: datetime, lease: timedelta) -> Sequence[str]:
    """Ids of running jobs whose worker has been silent for longer than its ``lease``."""
    return session.scalars(select(Job.id).where(Job.status == "running", has_lapsed(moment, lease))).all()


def waiting(session: ReadSession, since: datetime, until: datetime) -> Sequence[Job]:
    """Jobs that nobody has claimed and that were queued before ``since`` (or after ``until``, by another clock)."""
    elsewhen = or_(Job.queued_at < since, Job.queued_at > until)
    return session.scalars(select(Job).where(Job.status == "queued", elsewhen)).all()


def find_orphaned(session: ReadSession) -> Sequence[str]:
    """Ids of jobs that have not ended though their dataset is deleted."""
    gone = exists().where(Dataset.id == Job.dataset_id, Dataset.deleted_at.is_not(None))
    return session.scalars(select(Job.id).where(Job.status.not_in(ENDED), gone)).all()


def is_pinned(session: ReadSession, content_id: str) -> bool:
    """Whether a job that has not ended holds ``content_id``."""
    return session.scalar(select(exists().where(Job.content_id == content_id, Job.status.not_in(ENDED)))) or False
