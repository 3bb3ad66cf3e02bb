"""One account: its budget, the risk of one unit, its history, and the verification of its chain."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from markupsafe import Markup
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.audit.repository import RefusedJobs
from app.auth import repository as auth
from app.auth.caller import Caller
from app.budgets import service as budgets
from app.budgets.risks import bound_limit, measure_spent, trace_limit, trace_spent
from app.budgets.what_if_endpoints import CHAIN_ROWS
from app.dashboard.charts.bar import HATCH, draw_bar
from app.dashboard.charts.steps import WIDTH, draw_steps, is_thinned
from app.dashboard.charts.trade_off import RATES, draw_trade_off
from app.dashboard.days import parse_period
from app.dashboard.forms import NO_MISTAKES
from app.dashboard.ledger_history import EntryRow, count_refusals, make_rows, make_spans, make_steps, write_csv
from app.dashboard.pages.what_if import FIELDS, list_keys
from app.dashboard.paging import read_page
from app.dashboard.rendering import PREFIX, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import Visitor
from app.dashboard.wording import ENTRY_KINDS, format_number
from app.datasets import access
from app.datasets.populations import find_population
from app.db import ReadSession, now
from app.errors import InvalidRequest
from app.http.requests.pagination import PageRequest, make_page
from app.jobs import service as jobs
from app.jobs.repository import read_submissions
from app.ledger import Budget, EntryFilter, Exposure, Guarantee, LedgerEntry, LedgerStep
from app.recently_used import LeastRecentlyUsed
from app.services import Services, Shared

ROWS: Final = 100
CSV_PAGE: Final = 1_000
"""Entries of a download that are in memory at a time."""
MOST_STEPS: Final = 50_000
"""Entries in a chart. It bounds the time of a page."""
_MOST_DRAWINGS: Final = 64
"""Remembered charts of a process, each of about 30 kB. The caller's access is checked before one is used."""
_MOST_REFUSALS: Final = 10_000
_REFUSAL_ROWS: Final = 20
_MOST_MEMBERS: Final = 200
"""Datasets of the account that the page lists."""
_OF_HISTORY: Final = ("ledger", "refusals")
router = make_page_router()
Text = Annotated[str, Query(max_length=40)]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of the history as they were sent; empty text matches every value."""

    kind: str
    since: str
    until: str

    @property
    def criteria(self) -> EntryFilter:
        """The filter of the ledger. The last day is included.

        Raises:
            InvalidRequest: a filter is not valid.
        """
        if self.kind and self.kind not in ENTRY_KINDS:
            raise InvalidRequest.at("/query/kind", "Choose a kind of entry from the list.")
        return EntryFilter(self.kind or None, *parse_period(self.since, self.until))

    @property
    def query(self) -> str:
        """The filters as a query string."""
        fields = {"kind": self.kind, "since": self.since, "until": self.until}
        return urlencode({name: value for name, value in fields.items() if value})


@dataclass(frozen=True, slots=True)
class History:
    """The entries of one page of the history, and the chart of all pages."""

    rows: list[EntryRow]
    chart: "HistoryChart | None"
    next_cursor: str | None
    is_first: bool
    refusals: "RefusedHistory"


@dataclass(frozen=True, slots=True)
class RefusedHistory:
    """The newest refused jobs of the chosen days, and the names of their keys.

    ``jobs`` is the number of all refused jobs that were read. ``is_long`` is True if ``rows`` has not all of them.
    ``is_complete`` is False if there are more than were read.
    """

    rows: Sequence[RefusedJobs]
    names: Mapping[str, str]
    jobs: int
    is_long: bool
    is_complete: bool


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """A drawn history of ``entries``, from the one with number ``first`` on."""

    svg: Markup
    entries: int
    first: int
    is_thinned: bool


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A chart and the times of its axis."""

    chart: HistoryChart
    start: datetime
    end: datetime


_DRAWINGS: Final = LeastRecentlyUsed[Hashable, _Drawn](_MOST_DRAWINGS)


def _read_filters(kind: Text = "", since: Text = "", until: Text = "") -> Filters:
    return Filters(kind, since, until)


SentFilters = Annotated[Filters, Depends(_read_filters)]


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """The part of the history that is wanted; ``changed`` confirms a change of the account."""

    filters: Filters
    paging: PageRequest
    changed: str


def _read_history_request(
    filters: SentFilters, paging: Annotated[PageRequest, Depends(read_page(ROWS))], changed: Text = ""
) -> HistoryRequest:
    return HistoryRequest(filters, paging, changed)


SentHistoryRequest = Annotated[HistoryRequest, Depends(_read_history_request)]


@router.get("/populations/{dataset_id}")
def show_population(
    request: Request,
    services: Shared,
    visitor: Visitor,
    dataset_id: str,
    wanted: SentHistoryRequest,
) -> Response:
    """Show the account behind a dataset."""
    filters, paging = wanted.filters, wanted.paging
    criteria, before = filters.criteria, paging.after_sequence()
    with services.database.read() as session:
        dataset = access.find_visible(session, visitor, dataset_id)
        budget = budgets.read_budget(session, services.ledger, visitor, dataset_id)
        population = find_population(session, access.choose_key_filter(visitor), dataset)
        overview = budgets.list_overviews(session, services.ledger, visitor, [dataset])[dataset_id]
        key_names = auth.read_names(session, [each.key_id for each in budget.allocations or ()])
        exposure, guarantee = budgets.read_exposure(session, services.ledger, visitor, dataset_id)
        history = None
        if visitor.role != "analyst" and access.may_oversee(visitor, dataset):
            found = budgets.list_entries(
                session, services.ledger, visitor, dataset_id, limit=paging.limit + 1, before=before, criteria=criteria
            )
            refused = budgets.list_refused_jobs(
                session,
                services.ledger,
                visitor,
                dataset_id,
                limit=_MOST_REFUSALS,
                since=criteria.since,
                until=criteria.until,
            )
            chart = (
                _find_chart(session, services, visitor, budget, criteria=criteria, refused=refused) if found else None
            )
            history = _make_history(session, visitor, found, paging, chart=chart, refused=refused)
    return render(
        request,
        "population",
        visitor,
        twins=tuple(f"/v1/datasets/{dataset_id}/{part}" for part in ("budget", *(_OF_HISTORY if history else ()))),
        dataset=dataset,
        population=population,
        members=population.members[:_MOST_MEMBERS],
        budget=budget,
        overview=overview,
        hatch=HATCH,
        bar=_draw_bar(budget),
        spent_risk=measure_spent(exposure, budget.spent.epsilon, budget.spent.delta),
        limit_risk=bound_limit(guarantee),
        trade_off=_draw_trade_off(exposure, guarantee, budget),
        history=history,
        filters=filters,
        kinds=ENTRY_KINDS,
        changed=wanted.changed,
        may_change=dataset.owner_id == visitor.id and dataset.deleted_at is None,
        typed=dict.fromkeys(FIELDS, ""),
        mistakes=NO_MISTAKES,
        key_names=key_names,
        keys=list_keys(services, visitor, dataset),
    )


def _draw_bar(budget: Budget) -> Markup:
    spent, limit = budget.spent.epsilon, budget.limit.epsilon
    label = f"Of a limit of {format_number(limit)}: {format_number(spent)} spent"
    return draw_bar(spent, budget.reserved.epsilon, limit, label)


def _draw_trade_off(exposure: Exposure, guarantee: Guarantee, budget: Budget) -> Markup:
    is_spent = any(exposure.amounts)
    spent = trace_spent(exposure, budget.spent.epsilon, budget.spent.delta, RATES) if is_spent else None
    return draw_trade_off(trace_limit(guarantee, RATES), spent)


@router.get("/populations/{dataset_id}/entries.csv")
def download_entries(services: Shared, visitor: Visitor, dataset_id: str, filters: SentFilters) -> Response:
    """Download all entries that match, newest first, as CSV.

    One page of entries is in memory at a time. The first one is read before the answer starts, so a refusal is a
    problem and not half a file.
    """
    pages = _read_pages(services, visitor, dataset_id, filters.criteria)
    whole = chain((next(pages),), pages)
    headers = {"Content-Disposition": f'attachment; filename="ledger-{dataset_id}.csv"'}
    return StreamingResponse(write_csv(whole), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/populations/{dataset_id}/verification")
def show_verification(request: Request, services: Shared, visitor: Visitor, dataset_id: str) -> Response:
    """Verify the account's chain now, and show the result."""
    with services.database.read() as session:
        verifies = budgets.verify_chain(session, services.ledger, visitor, dataset_id)
        dataset = access.find_visible(session, visitor, dataset_id)
        newest = budgets.list_entries(session, services.ledger, visitor, dataset_id, limit=1, before=None)
    return render(
        request,
        "verification",
        visitor,
        twins=tuple(f"/v1/datasets/{dataset_id}/ledger/{part}" for part in ("verification", "chain")),
        script="verify.mjs",
        dataset=dataset,
        chain=f"{PREFIX}/populations/{dataset_id}/chain",
        verifies=verifies,
        newest=newest[0] if newest else None,
    )


@router.get("/populations/{dataset_id}/chain")
def read_chain(
    services: Shared, visitor: Visitor, dataset_id: str, after: Annotated[int, Query(ge=0, le=2**53 - 1)] = 0
) -> Response:
    """Answer with the entries after ``after``, for a verification in the browser."""
    with services.database.read() as session:
        part = budgets.read_chain(session, services.ledger, visitor, dataset_id, after=after, limit=CHAIN_ROWS)
    return JSONResponse(asdict(part))


def _read_pages(
    services: Services, visitor: Caller, dataset_id: str, criteria: EntryFilter
) -> Iterator[list[EntryRow]]:
    """Read the entries that match, newest first. Entries that are added during the download are left out."""
    before, is_last = None, False
    while not is_last:
        with services.database.read() as session:
            found = budgets.list_entries(
                session, services.ledger, visitor, dataset_id, limit=CSV_PAGE, before=before, criteria=criteria
            )
            rows = _make_rows(session, visitor, found)
        yield rows
        is_last = len(found) < CSV_PAGE
        before = None if is_last else found[-1].sequence


def _make_history(
    session: ReadSession,
    visitor: Caller,
    found: Sequence[LedgerEntry],
    paging: PageRequest,
    *,
    chart: HistoryChart | None,
    refused: Sequence[RefusedJobs],
) -> History:
    page = make_page(found, paging, lambda entry: entry.sequence, lambda entry: entry)
    rows = _make_rows(session, visitor, page.items)
    newest = refused[:_REFUSAL_ROWS]
    names = auth.read_names(session, {each.key_id for each in newest if each.key_id is not None})
    jobs_refused = sum(each.count for each in refused)
    is_long, is_complete = len(refused) > _REFUSAL_ROWS, len(refused) < _MOST_REFUSALS
    listed = RefusedHistory(newest, names, jobs_refused, is_long, is_complete)
    return History(rows, chart, page.next_cursor, paging.after is None, listed)


def _find_chart(
    session: ReadSession,
    services: Services,
    visitor: Caller,
    budget: Budget,
    *,
    criteria: EntryFilter,
    refused: Sequence[RefusedJobs],
) -> HistoryChart | None:
    """Draw the days of ``criteria``, or recall a drawing that looks the same.

    A chart ends now, so it is drawn again when the time axis has grown by a unit of the picture.
    """
    dataset_id, end = budget.dataset_id, min(now(), criteria.until or now())
    newest = budgets.list_entries(session, services.ledger, visitor, dataset_id, limit=1, before=None)
    refusals = sorted((each.at, each.count) for each in refused)
    days = (criteria.since, criteria.until)
    key = (dataset_id, newest[0].sequence, newest[0].entry_hash, days, tuple(refusals), budget.limit.epsilon)
    drawn = _DRAWINGS.get(key)
    if drawn is None or (end - drawn.end) * WIDTH >= drawn.end - drawn.start:
        read = budgets.list_steps(session, services.ledger, visitor, dataset_id, limit=MOST_STEPS, until=criteria.until)
        drawn = _draw_chart(read, refusals, budget.limit.epsilon, criteria.since, end)
        if drawn is not None and drawn.chart.is_thinned:
            _DRAWINGS.put(key, drawn)
    return None if drawn is None else drawn.chart


def _draw_chart(
    read: Sequence[LedgerStep],
    refusals: Sequence[tuple[datetime, int]],
    limit: float,
    since: datetime | None,
    end: datetime,
) -> _Drawn | None:
    """Draw the entries from ``since`` on. All kinds are drawn, because each may change the balance."""
    entries = [each for each in read if since is None or each.at >= since]
    if not entries:
        return None
    start, end = entries[0].at, max(entries[-1].at, end)
    spans = [span for span in make_spans(read, end) if span.end > start]
    svg = draw_steps(make_steps(entries), spans, count_refusals(refusals), limit, end)
    return _Drawn(HistoryChart(svg, len(entries), entries[0].sequence, is_thinned(len(entries))), start, end)


def _make_rows(session: ReadSession, visitor: Caller, entries: Sequence[LedgerEntry]) -> list[EntryRow]:
    job_ids = {entry.job_id for entry in entries if entry.job_id is not None}
    found = jobs.list_visible(session, visitor, job_ids)
    return make_rows(entries, found, read_submissions(session, {job.id for job in found}))
