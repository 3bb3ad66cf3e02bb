"""Database models of jobs and of worker leases."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Base


class Job(Base):
    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(ForeignKey("datasets.id"), index=True)
    caller_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    request: Mapped[dict[str, Any]]  # the validated body, defaults filled in
    plan: Mapped[dict[str, Any]]  # MechanismPlan.to_json()
    purpose: Mapped[str | None]  # why the caller runs it; every reader of the job sees it, and no release contains it
    status: Mapped[str] = mapped_column(index=True)  # queued running succeeded failed cancelled
    stage: Mapped[str]
    steps_planned: Mapped[int]
    steps_done: Mapped[int] = mapped_column(default=0)
    cost_epsilon: Mapped[float | None]
    cost_delta: Mapped[float | None]
    error_code: Mapped[str | None]
    release_id: Mapped[str | None]
    content_id: Mapped[str | None] = mapped_column(ForeignKey("contents.id"))  # pinned at the first claim
    attempts: Mapped[int] = mapped_column(default=0)
    handovers: Mapped[int] = mapped_column(default=0)  # attempts that a worker gave back because it was stopped
    fencing_token: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    queued_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    tidied: Mapped[bool] = mapped_column(default=False, index=True)  # all objects of its attempts are deleted
    request_id: Mapped[str | None]  # of the call that submitted it
    trace: Mapped[str | None]  # W3C trace context of that call, where it is traced


class WorkerLease(Base):
    """Named leases; the sweeper runs in the worker that holds the lease ``sweeper``."""

    __tablename__ = "worker_leases"

    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    until: Mapped[datetime]


class Worker(Base):
    """A worker and its last sign of life; see :mod:`app.jobs.workers`."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]  # of its machine or container
    version: Mapped[str]
    processes: Mapped[int]
    running_jobs: Mapped[int | None]  # at the last sign of life
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
