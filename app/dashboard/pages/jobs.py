"""Pages of jobs: the list, one job, and its cancellation."""

from typing import Annotated, Any, Final, get_args
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.dashboard.forms import SentForm
from app.dashboard.job_progress import list_progress
from app.dashboard.ledger_history import describe_job
from app.dashboard.paging import read_page
from app.dashboard.rendering import PREFIX, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import Visitor
from app.datasets import access
from app.datasets import repository as datasets
from app.errors import InvalidRequest
from app.http.requests.pagination import PageRequest, make_page
from app.jobs import repository, service
from app.jobs.lifecycle import Lifecycle
from app.jobs.schemas import Status
from app.jobs.views import make_job_view
from app.services import Shared

ROWS: Final = 50
STATUSES: Final = get_args(Status)
_ERRORS: Final = {
    "run_failed": "An error in the run.",
    "interrupted": "The workers that ran it were lost.",
    "dataset_deleted": "The dataset was deleted.",
}
router = make_page_router()


@router.get("/jobs")
def show_jobs(
    request: Request,
    services: Shared,
    visitor: Visitor,
    paging: Annotated[PageRequest, Depends(read_page(ROWS))],
    dataset_id: Annotated[str, Query(max_length=200)] = "",
    *,
    status: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """List the visitor's jobs and all jobs on its datasets, newest first."""
    if status and status not in STATUSES:
        raise InvalidRequest.at("/query/status", "Choose a state from the list.")
    with services.database.read() as session:
        found = service.list_page(
            session,
            visitor,
            dataset_id=dataset_id or None,
            status=status or None,
            before=paging.after_id("job"),
            limit=paging.limit + 1,
        )
        names = service.read_names(session, visitor, found)
        shown = datasets.read_names(session, [dataset_id], access.choose_key_filter(visitor)) if dataset_id else {}
    page = make_page(found, paging, lambda job: job.id, lambda job: job)
    is_running = any(job.status not in repository.ENDED for job in page.items)
    filters = {name: value for name, value in (("dataset_id", dataset_id), ("status", status)) if value}
    query = urlencode(filters)
    return render(
        request,
        "jobs",
        visitor,
        twins=(f"/v1/jobs?{query}" if query else "/v1/jobs",),
        rows=list_progress(page.items),
        is_running=is_running,
        script="live.mjs" if is_running else None,
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
        statuses=STATUSES,
        chosen=status,
        names=names,
        dataset_id=dataset_id,
        dataset_name=shown.get(dataset_id, dataset_id),
        query=query,
    )


@router.get("/jobs/{job_id}")
def show_job(
    request: Request,
    services: Shared,
    visitor: Visitor,
    job_id: str,
    submitted: Annotated[str, Query(max_length=1)] = "",
) -> Response:
    """Show a job; ``submitted=1`` confirms its submission, until it opens the data or ends."""
    with services.database.read() as session:
        job = service.find_visible(session, visitor, job_id)
        may_cancel = service.may_cancel(session, visitor, job)
        names = service.read_names(session, visitor, [job])[job.id]
    view = make_job_view(job, names)
    return render(
        request,
        "job",
        visitor,
        script=None if job.status in repository.ENDED else "live.mjs",
        twins=(f"/v1/jobs/{job_id}",),
        job=view,
        model=describe_job(job),
        was_submitted=submitted == "1" and job.content_id is None and job.ended_at is None,
        may_cancel=may_cancel and job.status not in repository.ENDED and not job.cancel_requested,
        is_ended=job.status in repository.ENDED,
        error=_ERRORS.get(str(job.error_code)),
        facts=_list_facts(view.parameters),
    )


@router.post("/jobs/{job_id}/cancel")
def cancel_job(services: Shared, visitor: Visitor, job_id: str, _: SentForm) -> Response:
    """Cancel a job; an ended job stays as it is."""
    with services.database.write() as tx:
        service.cancel(tx, Lifecycle(services.ledger, services.queue), visitor, job_id)
        record(tx)
    return RedirectResponse(f"{PREFIX}/jobs/{job_id}", 303)


def _list_facts(parameters: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _describe_fact(value)) for name, value in sorted(parameters.items()) if value is not None]


def _describe_fact(value: Any) -> str:
    """Describe a parameter in a few words; a distribution has too many numbers for a page."""
    if isinstance(value, dict):
        return "stated"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
