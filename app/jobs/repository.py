"""Queries over jobs; each change of state is one conditional UPDATE, a compare-and-set."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, case, exists, func, null, or_, select, true, update

from app.auth.models import ApiKey
from app.datasets.models import Dataset, DatasetShare
from app.db import ReadSession, WriteSession
from app.jobs.models import Job

ENDED = ("succeeded", "failed", "cancelled")


def get(session: ReadSession, job_id: str) -> Job | None:
    """Return the job, read again from the database."""
    return session.get(Job, job_id, populate_existing=True)


def change(tx: WriteSession, job_id: str, *conditions: ColumnElement[bool], **values: Any) -> bool:
    """Set ``values`` if ``conditions`` hold; return whether they did."""
    statement = update(Job).where(Job.id == job_id, *conditions).values(**values).returning(Job.id)
    return tx.execute(statement, execution_options={"synchronize_session": False}).one_or_none() is not None


def list_page(
    session: ReadSession,
    visible_to: str | None,
    *,
    dataset_id: str | None,
    status: str | None,
    before: str | None,
    limit: int,
) -> Sequence[Job]:
    """Return jobs with ids below ``before``, newest first.

    ``visible_to`` restricts them to the key's jobs and the jobs on its datasets; None means all.
    """
    query = _restrict(select(Job), visible_to).order_by(Job.id.desc()).limit(limit)
    if dataset_id is not None:
        query = query.where(Job.dataset_id == dataset_id)
    if status is not None:
        query = query.where(Job.status == status)
    if before is not None:
        query = query.where(Job.id < before)
    return session.scalars(query).all()


@dataclass(frozen=True, slots=True)
class JobNames:
    """The names of a job's submitter and dataset. ``dataset`` is None for a reader who may not see the dataset."""

    submitter: str
    dataset: str | None


def read_names(session: ReadSession, job_ids: Collection[str], reader: str | None) -> dict[str, JobNames]:
    """Map jobs to their names, as the key ``reader`` may see them; None may see all."""
    shared = exists().where(DatasetShare.dataset_id == Dataset.id, DatasetShare.key_id == reader)
    is_visible = true() if reader is None else or_(Dataset.owner_id == reader, shared)
    query = select(Job.id, ApiKey.name, case((is_visible, Dataset.name), else_=null()))
    query = query.join(ApiKey, ApiKey.id == Job.caller_id).join(Dataset, Dataset.id == Job.dataset_id)
    rows = session.execute(query.where(Job.id.in_(job_ids)))
    return {job_id: JobNames(submitter, dataset) for job_id, submitter, dataset in rows}


@dataclass(frozen=True, slots=True)
class Submission:
    """Who submitted a job, and why."""

    caller_id: str
    caller_name: str
    purpose: str | None


def read_submissions(session: ReadSession, job_ids: Collection[str]) -> dict[str, Submission]:
    """Map jobs to their submissions."""
    query = select(Job.id, ApiKey.id, ApiKey.name, Job.purpose).join(ApiKey, ApiKey.id == Job.caller_id)
    rows = session.execute(query.where(Job.id.in_(job_ids)))
    return {job_id: Submission(caller_id, name, purpose) for job_id, caller_id, name, purpose in rows}


def list_by_ids(session: ReadSession, visible_to: str | None, job_ids: Collection[str]) -> Sequence[Job]:
    """Return the jobs with these ids; ``visible_to`` as for :func:`list_page`."""
    return session.scalars(_restrict(select(Job), visible_to).where(Job.id.in_(job_ids))).all()


def _restrict(query: Select[Job], visible_to: str | None) -> Select[Job]:
    """Restrict a query to the key's jobs and the jobs on its datasets; None means all."""
    if visible_to is None:
        return query
    owned = select(Dataset.id).where(Dataset.owner_id == visible_to)
    return query.where(or_(Job.caller_id == visible_to, Job.dataset_id.in_(owned)))


def find_unended(session: ReadSession, dataset_id: str) -> Sequence[str]:
    """Return ids of the dataset's jobs that have not ended."""
    return session.scalars(select(Job.id).where(Job.dataset_id == dataset_id, Job.status.not_in(ENDED))).all()


def count_active(session: ReadSession, caller_id: str) -> int:
    """Count the caller's jobs that are waiting or running."""
    query = select(func.count()).where(Job.caller_id == caller_id, Job.status.not_in(ENDED))
    return session.scalars(query).one()


def find_untidied(session: ReadSession) -> Sequence[Job]:
    """Return ended jobs whose attempts may have left objects behind."""
    return session.scalars(select(Job).where(Job.tidied.is_(False), Job.status.in_(ENDED))).all()


def has_lapsed(moment: datetime, lease: timedelta) -> ColumnElement[bool]:
    """Return the condition that a lease has expired.

    A lease also counts as expired if it was granted before the clock was set back. Live leases are renewed in time.
    """
    return or_(Job.lease_until < moment, Job.lease_until > moment + 2 * lease)


def find_expired(session: ReadSession, moment: datetime, lease: timedelta) -> Sequence[str]:
    """Return ids of running jobs whose worker has not renewed its ``lease`` in time."""
    return session.scalars(select(Job.id).where(Job.status == "running", has_lapsed(moment, lease))).all()


def list_waiting(session: ReadSession, since: datetime, until: datetime) -> Sequence[Job]:
    """Return unclaimed jobs that were queued before ``since``.

    Jobs queued after ``until`` match too: their time comes from a clock that was set back.
    """
    outside = or_(Job.queued_at < since, Job.queued_at > until)
    return session.scalars(select(Job).where(Job.status == "queued", outside)).all()


def find_orphaned(session: ReadSession) -> Sequence[str]:
    """Return ids of jobs that have not ended although their dataset is deleted."""
    gone = exists().where(Dataset.id == Job.dataset_id, Dataset.deleted_at.is_not(None))
    return session.scalars(select(Job.id).where(Job.status.not_in(ENDED), gone)).all()


def is_pinned(session: ReadSession, content_id: str) -> bool:
    """Whether a job that has not ended uses ``content_id``."""
    return session.scalar(select(exists().where(Job.content_id == content_id, Job.status.not_in(ENDED)))) or False
