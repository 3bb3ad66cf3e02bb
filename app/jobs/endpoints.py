"""``/v1/quotes`` and ``/v1/jobs``."""

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse

from app.audit.journal import record
from app.auth.caller import AnyCaller, Caller, require
from app.auth.service import check_may_read_on
from app.db import ReadSession, WriteSession
from app.errors import BudgetExceeded, CorevaultError
from app.http.errors.openapi import problem_responses
from app.http.requests.idempotency import Answer, Idempotent, IdempotentRequest, idempotent
from app.http.requests.pagination import Page, Paging, page
from app.http.requests.routing import api_router
from app.jobs import repository, service
from app.jobs.events import Streams, Watcher, event_id
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job
from app.jobs.schemas import JobBody, JobView, QuoteView, Status
from app.jobs.views import job_view
from app.services import Services, Shared

router = api_router("/v1", "jobs", "unauthenticated", "dependency_unavailable")
Runner = Annotated[Caller, Depends(require(*sorted(service.RUNNERS)))]
_REFUSALS = (
    *("forbidden", "not_found", "state_conflict", "invalid_request", "method_not_allowed_on_private_data"),
    *("idempotency_conflict", "idempotency_in_progress"),
)
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"example": "event: progress\ndata: {…}\nid: 1.40.running.running\n\n"}}},
    204: {"description": "The stream has ended with the event that Last-Event-ID names."},
}


@router.post("/quotes", response_model=QuoteView, operation_id="quote_job", responses=problem_responses(*_REFUSALS))
def quote(services: Shared, caller: Runner, request: Idempotent, body: JobBody) -> JSONResponse:
    """Compute the privacy cost of a job. Nothing is changed, and no private row is read.

    A repeated request with the same Idempotency-Key gets the first answer again.
    """
    if request.key is None:
        with services.database.read() as session:
            return Answer.of(200, service.quote(session, services.ledger, caller, body)).response()
    _calibrate(services, caller, body)
    with services.database.write() as tx:
        return idempotent(
            tx, caller.id, request, lambda: Answer.of(200, service.quote(tx, services.ledger, caller, body))
        )


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobView,
    operation_id="submit_job",
    responses=problem_responses(*_REFUSALS, "budget_exceeded"),
)
def submit(services: Shared, caller: Runner, request: Idempotent, body: JobBody) -> JSONResponse:
    """Reserve the privacy cost of a job and queue the job.

    A repeated request with the same Idempotency-Key gets the first answer again and reserves nothing.
    """
    seen = _calibrate(services, caller, body)
    try:
        return _submit(services, caller, request, body, seen=seen)
    except BudgetExceeded:
        with services.database.write() as tx:
            services.ledger.record_refusal(tx, body.dataset_id)
        raise


def _calibrate(services: Services, caller: Caller, body: JobBody) -> bool:
    """Find the noise before the account is locked, so that others need not wait for it; whether there is a price."""
    with suppress(CorevaultError), services.database.read() as session:
        service.price(session, services.ledger, caller, body)
        return True
    return False


def _submit(
    services: Services, caller: Caller, request: IdempotentRequest, body: JobBody, *, seen: bool
) -> JSONResponse:
    def submitted(tx: WriteSession) -> JSONResponse:
        def produce() -> Answer:
            service.check_room(tx, caller, services.limits.active_jobs)
            job = service.submit(tx, services.ledger, _lifecycle(services), caller, body)
            record(tx, job.id)
            return Answer.of(202, job_view(job), {"Location": f"/v1/jobs/{job.id}"})

        return idempotent(tx, caller.id, request, produce, lifetime=None)

    if not seen:  # most likely a refusal: those in line would begin again because of it, and wait for its reasons
        return services.database.transact(submitted)
    return services.group_commit.transact(submitted, body.dataset_id)


@router.get("/jobs")
def list_jobs(
    services: Shared,
    caller: AnyCaller,
    paging: Paging,
    dataset_id: Annotated[str | None, Query(max_length=200)] = None,
    status: Annotated[Status | None, Query()] = None,
) -> Page[JobView]:
    """List the caller's jobs and all jobs on the caller's datasets, newest first.

    Administrators and auditors see every job.
    """
    with services.database.read() as session:
        rows = service.page(
            session,
            caller,
            dataset_id=dataset_id,
            status=status,
            before=paging.after_id("job"),
            limit=paging.limit + 1,
        )
        return page(rows, paging, lambda job: job.id, job_view)


@router.get("/jobs/{job_id}", operation_id="read_job", responses=problem_responses("not_found"))
def get_job(services: Shared, caller: AnyCaller, job_id: str) -> JobView:
    """Show a job."""
    with services.database.read() as session:
        return job_view(service.visible(session, caller, job_id))


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=JobView,
    operation_id="cancel_job",
    responses=problem_responses("forbidden", "not_found", "idempotency_conflict", "idempotency_in_progress"),
)
def cancel(services: Shared, caller: AnyCaller, request: Idempotent, job_id: str) -> JSONResponse:
    """Cancel a job.

    It is charged in full if it has opened the data. A job that has ended is returned unchanged.
    """
    with services.database.write() as tx:

        def produce() -> Answer:
            job = service.cancel(tx, _lifecycle(services), caller, job_id)
            record(tx)
            return Answer.of(200, job_view(job))

        return idempotent(tx, caller.id, request, produce)


def _read_visible(services: Shared, caller: AnyCaller, job_id: str) -> Job:
    with services.database.read() as session:
        return service.visible(session, caller, job_id)


@router.get(
    "/jobs/{job_id}/events",
    response_class=Response,
    operation_id="follow_job_events",
    responses={**problem_responses("not_found", "rate_limited"), **_EVENTS},
)
async def events(
    request: Request,
    services: Shared,
    caller: AnyCaller,
    job: Annotated[Job, Depends(_read_visible)],
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Send `progress` events until the job ends, and then an `end` event.

    The stream also stops when the key is revoked or expires. A request with the id of the `end` event is answered
    with 204.
    """
    if job.status in repository.ENDED and event_id(job) == last_event_id:
        return Response(status_code=204)
    streams, watcher = _streams(request, services), _watcher(caller, job.id)
    streams.admit(watcher)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(streams.follow(job.id, last_event_id, watcher), headers=headers)


def _watcher(caller: Caller, job_id: str) -> Watcher:
    def check(session: ReadSession) -> None:
        check_may_read_on(session, caller.id, caller.expires_at)
        service.visible(session, caller, job_id)

    return Watcher(caller.id, check)


def _streams(request: Request, services: Services) -> Streams:
    """One set of streams an application."""
    state = request.app.state
    if not hasattr(state, "job_streams"):
        state.job_streams = Streams(services.database)
    found = state.job_streams
    assert isinstance(found, Streams)
    return found


def _lifecycle(services: Services) -> Lifecycle:
    return Lifecycle(services.ledger, services.queue)
