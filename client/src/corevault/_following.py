"""Following a job to its end: server-sent events first, asking where they cannot be had."""

import json
import time
from collections.abc import Iterator

from corevault import _sse
from corevault._arguments import require_number
from corevault._http import Http, segment
from corevault._progress import Report, fraction_bar
from corevault.errors import ApiError, ConnectionFailed, UnexpectedReply, WaitTimeout
from corevault.replies.job import Job, JobEvent

_SILENCE_SECONDS = 40.0  # the server sends a comment every 15 s
_MOST_RESUMPTIONS = 5  # without a new event in between


def events(http: Http, job_id: str, last_event_id: str | None) -> Iterator[JobEvent]:
    """The events of one connection; ends after ``end`` or when the connection closes."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    with http.lines(f"/v1/jobs/{segment(job_id)}/events", headers, _SILENCE_SECONDS) as lines:
        for event in _sse.parse(lines):
            yield JobEvent(name=event.name, data=_members(event.data), id=event.id)
            if event.name == "end":
                return


def wait(http: Http, job_id: str, *, shown: bool, timeout_seconds: float | None, poll_seconds: float) -> Job:
    """The ended job, whatever its end. Raises ``WaitTimeout``."""
    if timeout_seconds is not None:
        require_number(timeout_seconds, "timeout_seconds")
    require_number(poll_seconds, "poll_seconds", lower=0.0)
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    with fraction_bar(shown, job_id) as report:
        job = _ask(http, job_id, report)
        if not job.ended:
            _follow(http, job_id, report, deadline)
            job = _ask(http, job_id, report)
        while not job.ended:
            _check(deadline)
            time.sleep(poll_seconds)
            job = _ask(http, job_id, report)
    return job


def _follow(http: Http, job_id: str, report: Report, deadline: float | None) -> None:
    """Reads events until ``end``, resuming a broken stream; returns early where there is no stream to be had."""
    last_id: str | None = None
    barren = 0
    while barren < _MOST_RESUMPTIONS:
        barren += 1
        try:
            for event in events(http, job_id, last_id):
                _report(event, report)
                if event.name == "end":
                    return
                last_id, barren = event.id or last_id, 0
                _check(deadline)
        except ConnectionFailed:
            pass  # resumed after the last event seen
        except (ApiError, UnexpectedReply):
            return
        _check(deadline)


def _report(event: JobEvent, report: Report) -> None:
    progress = event.data.get("progress", event.data)
    if isinstance(progress, dict) and isinstance(progress.get("fraction"), int | float):
        report(float(progress["fraction"]), str(progress.get("stage", "")))


def _ask(http: Http, job_id: str, report: Report) -> Job:
    job = Job.from_json(http.get(f"/v1/jobs/{segment(job_id)}"))
    if job.progress is not None:
        report(job.progress.fraction, job.progress.stage)
    return job


def _check(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise WaitTimeout("The job has not ended yet; it goes on at the server.")


def _members(data: str) -> dict[str, object]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise UnexpectedReply("An event's data is not JSON.") from error
    return value if isinstance(value, dict) else {}
