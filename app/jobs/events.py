"""A job's progress as server-sent events: polled from the database, since the row is the truth."""

import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Final

import anyio
import anyio.to_thread
from fastapi.sse import format_sse_event
from pydantic import BaseModel

from app.db import Database, ReadSession
from app.errors import NotFound, RateLimited, Unauthenticated
from app.jobs import repository
from app.jobs.models import Job
from app.jobs.schemas import Progress, Status
from app.jobs.views import job_view, progress

POLL_SECONDS: Final = 0.25
CHECK_SECONDS: Final = 1.0
"""How often it is asked whether the watcher may still see the job; also before each event."""
COMMENT_SECONDS: Final = 15.0
LIFETIME_SECONDS: Final = 3600.0
MAX_STREAMS: Final = 100
MAX_STREAMS_EACH: Final = 20
"""For one API key, so that nobody holds all of them."""
_READERS: Final = 4


class ProgressEvent(BaseModel):
    """The data of a ``progress`` event; that of ``end`` is the whole job."""

    id: str
    status: Status
    progress: Progress


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who follows a job: the caller's id, and a check that raises what a fresh call would be refused with."""

    id: str
    check: Callable[[ReadSession], object]


@dataclass(slots=True)
class Streams:
    """The open streams of this process: bounded, and all reading the database through a few threads."""

    database: Database
    clock: Callable[[], float] = time.monotonic
    _open: Counter[str] = field(default_factory=Counter)
    _readers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_READERS))

    def admit(self, watcher: Watcher) -> None:
        """Raise RateLimited while too many streams are open, or too many of the watcher's key."""
        if self._open.total() >= MAX_STREAMS or self._open[watcher.id] >= MAX_STREAMS_EACH:
            raise RateLimited

    async def follow(self, job_id: str, last_event_id: str | None, watcher: Watcher) -> AsyncIterator[bytes]:
        """Events newer than ``last_event_id`` until the job has ended; a comment where nothing happens for long.

        The stream ends as well once the watcher may not see the job any more.
        """
        self._open[watcher.id] += 1
        try:
            started = spoken = self.clock()
            checked = -math.inf
            seen = last_event_id
            while self.clock() - started < LIFETIME_SECONDS:
                job = await anyio.to_thread.run_sync(self._read, job_id, limiter=self._readers)
                is_news = job is not None and event_id(job) != seen
                if is_news or self.clock() - checked >= CHECK_SECONDS:
                    if not await anyio.to_thread.run_sync(self._admits, watcher, limiter=self._readers):
                        return
                    checked = self.clock()
                if job is not None and is_news:
                    seen, spoken = event_id(job), self.clock()
                    yield encode(job)
                if job is None or job.status in repository.ENDED:
                    return
                if self.clock() - spoken >= COMMENT_SECONDS:
                    spoken = self.clock()
                    yield format_sse_event(comment="waiting")
                await anyio.sleep(POLL_SECONDS)
        finally:
            self._open[watcher.id] -= 1
            self._open += Counter()  # forget who has none left

    def _read(self, job_id: str) -> Job | None:
        with self.database.read() as session:
            return repository.get(session, job_id)

    def _admits(self, watcher: Watcher) -> bool:
        try:
            with self.database.read() as session:
                watcher.check(session)
        except (Unauthenticated, NotFound):
            return False
        return True


def event_id(job: Job) -> str:
    """Names what there is to tell of the job: equal ids, equal events."""
    return f"{job.fencing_token}.{job.steps_done}.{job.status}.{job.stage}"


def encode(job: Job) -> bytes:
    """One event in wire form."""
    if job.status in repository.ENDED:
        return format_sse_event(event="end", data_str=job_view(job).model_dump_json(), id=event_id(job))
    data = ProgressEvent.model_validate({"id": job.id, "status": job.status, "progress": progress(job)})
    return format_sse_event(event="progress", data_str=data.model_dump_json(), id=event_id(job))
