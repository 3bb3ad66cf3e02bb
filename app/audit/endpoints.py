"""``/v1/audit-log``."""

from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import AwareDatetime

from app.audit import repository
from app.audit.background_writer import AuditRecorder
from app.audit.repository import AuditFilter
from app.audit.schemas import AuditView, OutcomeName
from app.auth.caller import Caller, RoleCheck
from app.http.errors.openapi import make_problem_responses
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.services import Shared

router = make_router("/v1", "operations", "unauthenticated", "dependency_unavailable")
Overseer = Annotated[Caller, Depends(RoleCheck("admin", "auditor"))]
Word = Annotated[str | None, Query(max_length=200)]


def _read_filters(
    actor: Word = None,
    action: Word = None,
    target: Word = None,
    *,
    outcome: Annotated[OutcomeName | None, Query()] = None,
    since: Annotated[AwareDatetime | None, Query()] = None,
    until: Annotated[AwareDatetime | None, Query()] = None,
) -> AuditFilter:
    return AuditFilter(actor=actor, action=action, outcome=outcome, target=target, since=since, until=until)


@router.get("/audit-log", responses=make_problem_responses("forbidden"))
def read_audit_log(
    request: Request,
    services: Shared,
    _: Overseer,
    criteria: Annotated[AuditFilter, Depends(_read_filters)],
    paging: Paging,
) -> Page[AuditView]:
    """List changes and refusals, newest first. Equal refusals may be one entry with a count."""
    recorder = request.app.state.audit_recorder
    assert isinstance(recorder, AuditRecorder)
    recorder.flush()  # the page includes the calls that this process has counted
    with services.database.read() as session:
        rows = repository.list_page(session, criteria, before=paging.after_id("aud"), limit=paging.limit + 1)
        return make_page(rows, paging, lambda entry: entry.id, AuditView.model_validate)
