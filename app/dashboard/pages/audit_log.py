"""The audit log, for administrators and auditors."""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.responses import Response

from app.audit import repository
from app.audit.background_writer import AuditRecorder
from app.audit.journal import Outcome
from app.audit.repository import AuditFilter
from app.auth import repository as auth
from app.dashboard.days import parse_period
from app.dashboard.paging import read_page
from app.dashboard.rendering import PREFIX, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OverseerVisitor
from app.datasets import repository as datasets
from app.errors import InvalidRequest
from app.http.requests.pagination import PageRequest, make_page
from app.services import Shared

ROWS: Final = 100
_PLACES: Final = {"ds": "datasets", "job": "jobs", "rel": "releases"}
"""Start of an object's id -> the folder of its page."""
OUTCOMES: Final = tuple(str(outcome) for outcome in Outcome)
router = make_page_router()
Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters as they were sent; empty text matches every value."""

    actor: str
    action: str
    target: str
    outcome: str
    since: str
    until: str

    @property
    def criteria(self) -> AuditFilter:
        """The filter of the audit log. The last day is included.

        Raises:
            InvalidRequest: a filter is not valid.
        """
        if self.outcome and self.outcome not in OUTCOMES:
            raise InvalidRequest.at("/query/outcome", "Choose an outcome from the list.")
        since, until = parse_period(self.since, self.until)
        return AuditFilter(
            actor=self.actor or None,
            action=self.action or None,
            target=self.target or None,
            outcome=self.outcome or None,
            since=since,
            until=until,
        )

    @property
    def query(self) -> str:
        """The filters as a query string."""
        names = ("actor", "action", "target", "outcome", "since", "until")
        return urlencode({name: value for name in names if (value := getattr(self, name))})


def _read_filters(
    actor: Word = "", action: Word = "", target: Word = "", *, outcome: Word = "", since: Word = "", until: Word = ""
) -> Filters:
    return Filters(actor.strip(), action.strip(), target.strip(), outcome, since, until)


@router.get("/audit-log")
def show_audit_log(
    request: Request,
    services: Shared,
    visitor: OverseerVisitor,
    filters: Annotated[Filters, Depends(_read_filters)],
    paging: Annotated[PageRequest, Depends(read_page(ROWS))],
) -> Response:
    """List every change and every refusal, newest first."""
    criteria = filters.criteria
    recorder = request.app.state.audit_recorder
    assert isinstance(recorder, AuditRecorder)
    recorder.flush()  # the page includes the calls that this process has counted
    with services.database.read() as session:
        found = repository.list_page(session, criteria, before=paging.after_id("aud"), limit=paging.limit + 1)
        targets = {entry.target for entry in found if entry.target}
        names = auth.read_names(session, targets | {entry.actor for entry in found if entry.actor})
        names |= datasets.read_names(session, targets)
    page = make_page(found, paging, lambda entry: entry.id, lambda entry: entry)
    return render(
        request,
        "audit_log",
        visitor,
        twins=("/v1/audit-log",),
        rows=page.items,
        names=names,
        links={each: f"{PREFIX}/{place}/{each}" for each in targets if (place := _PLACES.get(each.partition("_")[0]))},
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
        filters=filters,
        outcomes=OUTCOMES,
    )
