"""``/v1/quotes`` and ``/v1/jobs``."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse

from app.audit.journal import record
from app.auth.caller import AnyCaller, Caller, RoleCheck
from app.auth.service import check_may_read_on
from app.db import ReadSession
from app.errors import InvalidRequest
from app.http.errors.openapi import make_problem_responses
from app.http.requests.idempotency import Answer, Idempotent, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.jobs import quotes, repository, service
from app.jobs.events import Streams, Watcher, make_event_id
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job
from app.jobs.quote_schemas import QuoteBody, QuoteList
from app.jobs.repository import JobNames
from app.jobs.schemas import JobBody, JobView, QuoteView, Status
from app.jobs.submission import submit_job
from app.jobs.views import make_job_view
from app.services import Services, Shared

router = make_router("/v1", "jobs", "unauthenticated", "dependency_unavailable")
Runner = Annotated[Caller, Depends(RoleCheck(*sorted(service.RUNNERS)))]
_REFUSALS = (
    *("forbidden", "not_found", "state_conflict", "invalid_request", "method_not_allowed_on_private_data"),
    *("idempotency_conflict", "idempotency_in_progress"),
)
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"example": "event: progress\ndata: {…}\nid: 1.40.running.running\n\n"}}},
    204: {"description": "The job has ended, and Last-Event-ID is the id of its last event."},
}


@router.post(
    "/quotes",
    response_model=QuoteView | QuoteList,
    operation_id="quote_job",
    responses=make_problem_responses(*_REFUSALS, "rate_limited"),
)
def quote(services: Shared, caller: Runner, http: Request, request: Idempotent, body: QuoteBody) -> JSONResponse:
    """Quote the price of a job; it reads no private row and changes nothing.

    If `privacy.epsilon` is a list, the answer has a list of quotes, one for each target. Each of them counts as a
    request of the key's rate limit. With `expected_accuracy`, a quote estimates how much noise widens intervals.
    With an Idempotency-Key, a repeated request gets the first answer again.
    """
    if services.rates is not None and body.requests > 1:
        http.state.response_headers = services.rates.request(caller.id, body.requests - 1)
    if request.key is None:
        with services.database.read() as session:
            return Answer.of(200, quotes.quote(session, services.ledger, caller, body)).response()
    with suppress(InvalidRequest), services.database.read() as session:  # fills the caches without locks
        quotes.quote(session, services.ledger, caller, body)
    with services.database.write() as tx:
        return answer_once(
            tx, caller.id, request, lambda: Answer.of(200, quotes.quote(tx, services.ledger, caller, body))
        )


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobView,
    operation_id="submit_job",
    responses=make_problem_responses(*_REFUSALS, "budget_exceeded", "privacy_alarm"),
)
def submit(services: Shared, caller: Runner, request: Idempotent, body: JobBody) -> JSONResponse:
    """Reserve a job's price and queue the job.

    A repeated request with the same Idempotency-Key does not reserve again.
    """
    return submit_job(services, caller, request, body)


@router.get("/jobs")
def list_jobs(
    services: Shared,
    caller: AnyCaller,
    paging: Paging,
    dataset_id: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[Status | None, Query()] = None,
) -> Page[JobView]:
    """List the caller's jobs and all jobs on its datasets, newest first.

    Auditors and administrators see every job.
    """
    with services.database.read() as session:
        rows = service.list_page(
            session,
            caller,
            dataset_id=dataset_id,
            status=status,
            before=paging.after_id("job"),
            limit=paging.limit + 1,
        )
        names = service.read_names(session, caller, rows)
        return make_page(rows, paging, lambda job: job.id, lambda job: make_job_view(job, names[job.id]))


@router.get("/jobs/{job_id}", operation_id="read_job", responses=make_problem_responses("not_found"))
def get_job(services: Shared, caller: AnyCaller, job_id: str) -> JobView:
    """Read a job."""
    with services.database.read() as session:
        return _make_view(session, caller, service.find_visible(session, caller, job_id))


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=JobView,
    operation_id="cancel_job",
    responses=make_problem_responses("forbidden", "not_found", "idempotency_conflict", "idempotency_in_progress"),
)
def cancel(services: Shared, caller: AnyCaller, request: Idempotent, job_id: str) -> JSONResponse:
    """Cancel a job; an ended job is returned unchanged.

    The job is charged in full if it has already opened the data.
    """
    with services.database.write() as tx:

        def produce() -> Answer:
            job = service.cancel(tx, _lifecycle(services), caller, job_id)
            record(tx)
            return Answer.of(200, _make_view(tx, caller, job))

        return answer_once(tx, caller.id, request, produce)


def _make_view(session: ReadSession, caller: Caller, job: Job) -> JobView:
    return make_job_view(job, service.read_names(session, caller, [job])[job.id])


def _read_visible(services: Shared, caller: AnyCaller, job_id: str) -> tuple[Job, JobNames]:
    with services.database.read() as session:
        job = service.find_visible(session, caller, job_id)
        return job, service.read_names(session, caller, [job])[job.id]


@router.get(
    "/jobs/{job_id}/events",
    response_class=Response,
    operation_id="follow_job_events",
    responses={**make_problem_responses("not_found", "rate_limited"), **_EVENTS},
)
async def events(
    request: Request,
    services: Shared,
    caller: AnyCaller,
    visible: Annotated[tuple[Job, JobNames], Depends(_read_visible)],
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Follow a job: ``progress`` events, and an ``end`` event with the whole job.

    The stream ends early if the key is revoked or expires. A request with the id of the ``end`` event as Last-Event-ID
    is answered with 204.
    """
    job, names = visible
    if job.status in repository.ENDED and make_event_id(job) == last_event_id:
        return Response(status_code=204)
    streams, watcher = _streams(request, services), _watcher(caller, job.id, names)
    streams.admit(watcher)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(streams.follow(job.id, last_event_id, watcher), headers=headers)


def _watcher(caller: Caller, job_id: str, names: JobNames) -> Watcher:
    def check(session: ReadSession) -> None:
        check_may_read_on(session, caller.id, caller.expires_at)
        service.find_visible(session, caller, job_id)

    return Watcher(caller.id, names, check)


def _streams(request: Request, services: Services) -> Streams:
    """Return the application's streams; the first call creates them."""
    state = request.app.state
    if not hasattr(state, "job_streams"):
        state.job_streams = Streams(services.database)
    streams = state.job_streams
    assert isinstance(streams, Streams)
    return streams


def _lifecycle(services: Services) -> Lifecycle:
    return Lifecycle(services.ledger, services.queue)
