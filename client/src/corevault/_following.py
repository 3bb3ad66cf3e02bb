"""Waiting for a job: by server-sent events, or by polling if the server sends none."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from corevault._arguments import require_number
from corevault._http import Http, quote_segment
from corevault._progress import Report, show_fraction
from corevault._sse import EventParser
from corevault.errors import ApiError, ConnectionFailed, UnexpectedReply, WaitTimeout
from corevault.replies.job import Job, JobEvent

_SILENCE_SECONDS = 40.0  # the server sends a comment every 15 s
_MOST_ATTEMPTS = 5  # connections in a row without a new event


async def read_events(http: Http, job_id: str, last_event_id: str | None) -> AsyncGenerator[JobEvent, None]:
    """The events of one connection, up to ``end`` or until the connection closes."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    parser = EventParser()
    async with http.lines(f"/v1/jobs/{quote_segment(job_id)}/events", headers, _SILENCE_SECONDS) as lines:
        async for line in lines:
            event = parser.feed(line)
            if event is None:
                continue
            yield JobEvent(name=event.name, data=_members(event.data), id=event.id)
            if event.name == "end":
                return


async def wait(http: Http, job_id: str, *, shown: bool, timeout_seconds: float | None, poll_seconds: float) -> Job:
    """The job once it has ended, in any final state. Raises ``WaitTimeout``."""
    if timeout_seconds is not None:
        require_number(timeout_seconds, "timeout_seconds")
    require_number(poll_seconds, "poll_seconds", lower=0.0)
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    with show_fraction(shown, job_id) as report:
        job = await _fetch_job(http, job_id, report)
        if not job.ended:
            await _follow(http, job_id, report, deadline)
            job = await _fetch_job(http, job_id, report)
        while not job.ended:
            _check_deadline(deadline)
            await http.io.sleep(poll_seconds)
            job = await _fetch_job(http, job_id, report)
    return job


async def _follow(http: Http, job_id: str, report: Report, deadline: float | None) -> None:
    """Reads events until ``end`` and resumes a broken stream. Returns early if the server sends no events."""
    last_id: str | None = None
    attempts = 0
    while attempts < _MOST_ATTEMPTS:
        attempts += 1
        try:
            async with aclosing(read_events(http, job_id, last_id)) as events:
                async for event in events:
                    _report(event, report)
                    if event.name == "end":
                        return
                    last_id, attempts = event.id or last_id, 0
                    _check_deadline(deadline)
        except ConnectionFailed:
            pass  # resume after the last event
        except (ApiError, UnexpectedReply):
            return
        _check_deadline(deadline)


def _report(event: JobEvent, report: Report) -> None:
    progress = event.data.get("progress", event.data)
    if isinstance(progress, dict) and isinstance(progress.get("fraction"), int | float):
        report(float(progress["fraction"]), str(progress.get("stage", "")))


async def _fetch_job(http: Http, job_id: str, report: Report) -> Job:
    job = Job.from_json(await http.get(f"/v1/jobs/{quote_segment(job_id)}"))
    if job.progress is not None:
        report(job.progress.fraction, job.progress.stage)
    return job


def _check_deadline(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WaitTimeout("The job has not ended within timeout_seconds and continues; call jobs.wait again.")


def _members(data: str) -> dict[str, object]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise UnexpectedReply("The data of a server-sent event is not JSON.") from error
    return value if isinstance(value, dict) else {}
