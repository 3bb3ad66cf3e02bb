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
from app.http.errors.openapi import make_problem_responses
from app.http.requests.idempotency import Answer, Idempotent, IdempotentRequest, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.jobs import repository, service
from app.jobs.events import Streams, Watcher, make_event_id
from app.jobs.lifecycle import Lifecycle
from app.jobs.models import Job
from app.jobs.schemas import JobBody, JobView, QuoteView, Status
from app.jobs.views import make_job_view
from app.services import Services, Shared

router = make_router("/v1", "jobs", "unauthenticated", "dependency_unavailable")
Runner = Annotated[Caller, Depends(require(*sorted(service.RUNNERS)))]
_REFUSALS = (
    *("forbidden", "not_found", "state_conflict", "invalid_request", "method_not_allowed_on_private_data"),
    *("idempotency_conflict", "idempotency_in_progress"),
)
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"example": "event: progress\ndata: {…}\nid: 1.40.running.running\n\n"}}},
    204: {"description": "The job has ended, and Last-Event-ID is the id of its last event."},
}


@router.post(
    "/quotes", response_model=QuoteView, operation_id="quote_job", responses=make_problem_responses(*_REFUSALS)
)
def quote(services: Shared, caller: Runner, request: Idempotent, body: JobBody) -> JSONResponse:
    """Quote the price of a job; it reads no private row and changes nothing.

    With an Idempotency-Key, a repeated request gets the first answer again.
    """
    if request.key is None:
        with services.database.read() as session:
            return Answer.of(200, service.quote(session, services.ledger, caller, body)).response()
    _calibrate(services, caller, body)
    with services.database.write() as tx:
        return answer_once(
            tx, caller.id, request, lambda: Answer.of(200, service.quote(tx, services.ledger, caller, body))
        )


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobView,
    operation_id="submit_job",
    responses=make_problem_responses(*_REFUSALS, "budget_exceeded"),
)
def submit(services: Shared, caller: Runner, request: Idempotent, body: JobBody) -> JSONResponse:
    """Reserve a job's price and queue the job.

    A repeated request with the same Idempotency-Key does not reserve again.
    """
    has_price = _calibrate(services, caller, body)
    try:
        return _submit(services, caller, request, body, has_price=has_price)
    except BudgetExceeded:
        with services.database.write() as tx:
            services.ledger.record_refusal(tx, body.dataset_id)
        raise


def _calibrate(services: Services, caller: Caller, body: JobBody) -> bool:
    """Calibrate the noise and cache it; return whether the job has a price.

    This happens before the account is locked, so that other requests do not wait for the calibration.
    """
    with suppress(CorevaultError), services.database.read() as session:
        service.price(session, services.ledger, caller, body)
        return True
    return False


def _submit(
    services: Services, caller: Caller, request: IdempotentRequest, body: JobBody, *, has_price: bool
) -> JSONResponse:
    def submit_once(tx: WriteSession) -> JSONResponse:
        def produce() -> Answer:
            service.check_room(tx, caller, services.limits.active_jobs)
            job = service.submit(tx, services.ledger, _lifecycle(services), caller, body)
            record(tx, job.id)
            return Answer.of(202, make_job_view(job), {"Location": f"/v1/jobs/{job.id}"})

        return answer_once(tx, caller.id, request, produce, lifetime=None)

    if not has_price:  # it will probably be refused, and a refusal makes its whole commit group start again
        return services.database.transact(submit_once)
    return services.group_commit.transact(submit_once, body.dataset_id)


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
        return make_page(rows, paging, lambda job: job.id, make_job_view)


@router.get("/jobs/{job_id}", operation_id="read_job", responses=make_problem_responses("not_found"))
def get_job(services: Shared, caller: AnyCaller, job_id: str) -> JobView:
    """Read a job."""
    with services.database.read() as session:
        return make_job_view(service.find_visible(session, caller, job_id))


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
            return Answer.of(200, make_job_view(job))

        return answer_once(tx, caller.id, request, produce)


def _read_visible(services: Shared, caller: AnyCaller, job_id: str) -> Job:
    with services.database.read() as session:
        return service.find_visible(session, caller, job_id)


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
    job: Annotated[Job, Depends(_read_visible)],
    last_event_id: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Follow a job: ``progress`` events, and an ``end`` event with the whole job.

    The stream ends early if the key is revoked or expires. A request with the id of the ``end`` event as Last-Event-ID
    is answered with 204.
    """
    if job.status in repository.ENDED and make_event_id(job) == last_event_id:
        return Response(status_code=204)
    streams, watcher = _streams(request, services), _watcher(caller, job.id)
    streams.admit(watcher)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(streams.follow(job.id, last_event_id, watcher), headers=headers)


def _watcher(caller: Caller, job_id: str) -> Watcher:
    def check(session: ReadSession) -> None:
        check_may_read_on(session, caller.id, caller.expires_at)
        service.find_visible(session, caller, job_id)

    return Watcher(caller.id, check)


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
