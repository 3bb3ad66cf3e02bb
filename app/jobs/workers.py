"""Signs of life of workers. They depend on processes and messages, never on rows of tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import delete, select, update

from app.db import ReadSession, WriteSession, generate_id, read_time
from app.jobs.models import Worker

LATEST: Final = timedelta(seconds=30)
"""A worker without a sign of life for longer counts as silent. Workers give one every few seconds."""
KEPT: Final = timedelta(days=1)
"""How long the row of a silent worker is kept."""
_CLOCKS: Final = timedelta(seconds=5)
"""How far the clocks of two machines may differ."""


class Liveness(StrEnum):
    ALIVE = "alive"
    SILENT = "silent"
    UNKNOWN = "unknown"
    """The time of the last sign of life is in the future, so its age is unknown."""

    @classmethod
    def of(cls, seen_at: datetime, at: datetime) -> "Liveness":
        """Judge the last sign of life at the time ``at``."""
        age = at - seen_at
        return cls.UNKNOWN if age < -_CLOCKS else cls.SILENT if age > LATEST else cls.ALIVE


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker that did not end by itself; ``running_jobs`` is None if the worker could not count them."""

    id: str
    name: str
    state: Liveness
    seen_at: datetime
    started_at: datetime
    running_jobs: int | None
    processes: int
    version: str


def begin(tx: WriteSession, *, name: str, version: str, processes: int) -> str:
    """Add a worker that starts now, and return its id. Remove long silent ones."""
    at = read_time(tx)
    tx.execute(delete(Worker).where(Worker.seen_at < at - KEPT))
    worker = Worker(id=generate_id("wrk"), name=name, version=version, processes=processes)
    worker.running_jobs, worker.started_at, worker.seen_at = 0, at, at
    tx.add(worker)
    tx.flush()
    return worker.id


def give_sign(tx: WriteSession, worker_id: str, running_jobs: int | None) -> bool:
    """Record a sign of life; False if the worker's row was removed."""
    values = {"seen_at": read_time(tx), "running_jobs": running_jobs}
    changed = update(Worker).where(Worker.id == worker_id).values(**values).returning(Worker.id)
    return tx.execute(changed).first() is not None


def end(tx: WriteSession, worker_id: str) -> None:
    """Remove a worker that ends by itself."""
    tx.execute(delete(Worker).where(Worker.id == worker_id))


def list_workers(session: ReadSession, *, before: str | None = None, limit: int) -> Sequence[WorkerState]:
    """List workers, the newest first; ``before``: only ids below it."""
    query = select(Worker).order_by(Worker.id.desc()).limit(limit)
    if before is not None:
        query = query.where(Worker.id < before)
    at = read_time(session)
    return [
        WorkerState(
            id=each.id,
            name=each.name,
            state=Liveness.of(each.seen_at, at),
            seen_at=each.seen_at,
            started_at=each.started_at,
            running_jobs=each.running_jobs,
            processes=each.processes,
            version=each.version,
        )
        for each in session.scalars(query)
    ]
