"""``/v1/workers``: the workers and their last signs of life."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends
from pydantic import ConfigDict

from app.auth.caller import Caller, RoleCheck
from app.http.errors.openapi import make_problem_responses
from app.http.requests.bodies import ResponseBody
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.jobs.workers import list_workers
from app.services import Shared

router = make_router("/v1", "operations", "unauthenticated", "dependency_unavailable")
Overseer = Annotated[Caller, Depends(RoleCheck("admin", "auditor"))]


class WorkerView(ResponseBody):
    """A worker. Nothing here depends on private rows."""

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "wrk_01jd0000000000000000000000",
                    "name": "worker-1",
                    "state": "alive",
                    "seen_at": "2029-01-31T12:00:05Z",
                    "started_at": "2029-01-31T08:00:00Z",
                    "running_jobs": 1,
                    "processes": 2,
                    "version": "0.1.0",
                }
            ]
        },
    )

    id: str
    """Id of the worker; each start has another."""
    name: str
    """Name of its machine or container."""
    state: Literal["alive", "silent", "unknown"]
    """`alive`: it gave a sign of life within 30 seconds. `silent`: it did not. `unknown`: its clock is ahead."""
    seen_at: datetime
    """Time of its last sign of life."""
    started_at: datetime
    """Time of its start."""
    running_jobs: int | None
    """Jobs that it ran at its last sign of life; null if it could not count them."""
    processes: int
    """Number of its processes that carry out jobs and uploads."""
    version: str
    """Version of its code."""


@router.get("/workers", operation_id="list_workers", responses=make_problem_responses("forbidden"))
def read_workers(services: Shared, _: Overseer, paging: Paging) -> Page[WorkerView]:
    """List the workers, newest first.

    A worker that was stopped is not listed. One that was killed is listed as silent for a day. Workers of earlier
    versions give no sign of life, so they are not listed.
    """
    with services.database.read() as session:
        found = list_workers(session, before=paging.after_id("wrk"), limit=paging.limit + 1)
    return make_page(found, paging, lambda each: each.id, WorkerView.model_validate)
