"""Streams a job's progress as server-sent events, by polling its database row."""

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
from app.jobs.repository import JobNames
from app.jobs.schemas import Progress, Status
from app.jobs.views import compute_progress, make_job_view

POLL_SECONDS: Final = 0.25
CHECK_SECONDS: Final = 1.0
"""Longest time between two access checks of a watcher. Before each event there is one more."""
COMMENT_SECONDS: Final = 15.0
LIFETIME_SECONDS: Final = 3600.0
MAX_STREAMS: Final = 100
MAX_STREAMS_EACH: Final = 20
"""Limit for one API key, so that no key can use all streams."""
_READERS: Final = 4


class ProgressEvent(BaseModel):
    """The data of a ``progress`` event; the data of an ``end`` event is the whole job."""

    id: str
    status: Status
    progress: Progress


@dataclass(frozen=True, slots=True)
class Watcher:
    """A caller who follows a job: the caller's id, the names that it saw at the start, and its access check.

    ``check`` raises the error that a new request for the job would get.
    """

    id: str
    names: JobNames
    check: Callable[[ReadSession], object]


@dataclass(slots=True)
class Streams:
    """The open streams of this process.

    Their number is limited. All of them read the database in the same few threads.
    """

    database: Database
    clock: Callable[[], float] = time.monotonic
    _open: Counter[str] = field(default_factory=Counter)
    _readers: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_READERS))

    def admit(self, watcher: Watcher) -> None:
        """Check that the watcher may open a stream.

        Raises:
            RateLimited: too many streams are open in total or for the watcher's key.
        """
        if self._open.total() >= MAX_STREAMS or self._open[watcher.id] >= MAX_STREAMS_EACH:
            raise RateLimited

    async def follow(self, job_id: str, last_event_id: str | None, watcher: Watcher) -> AsyncIterator[bytes]:
        """Yield events newer than ``last_event_id`` until the job has ended.

        While the job does not change, it yields a comment every ``COMMENT_SECONDS``. The stream also ends after
        ``LIFETIME_SECONDS``, and when the watcher may not see the job any more.
        """
        self._open[watcher.id] += 1
        try:
            started = last_output = self.clock()
            checked = -math.inf
            seen = last_event_id
            while self.clock() - started < LIFETIME_SECONDS:
                job = await anyio.to_thread.run_sync(self._read, job_id, limiter=self._readers)
                is_news = job is not None and make_event_id(job) != seen
                if is_news or self.clock() - checked >= CHECK_SECONDS:
                    if not await anyio.to_thread.run_sync(self._admits, watcher, limiter=self._readers):
                        return
                    checked = self.clock()
                if job is not None and is_news:
                    seen, last_output = make_event_id(job), self.clock()
                    yield encode(job, watcher.names)
                if job is None or job.status in repository.ENDED:
                    return
                if self.clock() - last_output >= COMMENT_SECONDS:
                    last_output = self.clock()
                    yield format_sse_event(comment="waiting")
                await anyio.sleep(POLL_SECONDS)
        finally:
            self._open[watcher.id] -= 1
            self._open += Counter()  # removes keys without streams

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


def make_event_id(job: Job) -> str:
    """Return the id of the event that describes the job now; equal ids mean equal events."""
    return f"{job.fencing_token}.{job.steps_done}.{job.status}.{job.stage}"


def encode(job: Job, names: JobNames) -> bytes:
    """Encode the event that describes the job now, in the wire format."""
    if job.status in repository.ENDED:
        data_str = make_job_view(job, names).model_dump_json()
        return format_sse_event(event="end", data_str=data_str, id=make_event_id(job))
    data = ProgressEvent.model_validate({"id": job.id, "status": job.status, "progress": compute_progress(job)})
    return format_sse_event(event="progress", data_str=data.model_dump_json(), id=make_event_id(job))
