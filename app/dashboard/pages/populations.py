"""The first page: the budget of every dataset that the visitor may see."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import Response

from app.auth import repository as auth
from app.budgets.service import list_overviews
from app.dashboard.charts.bar import HATCH, draw_bar
from app.dashboard.paging import read_page
from app.dashboard.rendering import render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import Visitor
from app.dashboard.wording import format_number
from app.datasets import access
from app.datasets import repository as datasets
from app.datasets.models import Dataset
from app.http.requests.pagination import PageRequest, make_page
from app.ledger import Budget, Overview
from app.services import Shared

ROWS: Final = 25
router = make_page_router()


@dataclass(frozen=True, slots=True)
class Row:
    """One dataset with its account; public data has no account. ``owner`` is empty for the visitor's own."""

    dataset: Dataset
    owner: str
    budget: Budget | None
    bar: Markup
    more: int | None
    lasts: timedelta | None
    frozen_at: datetime | None


@router.get("")
def show_populations(
    request: Request, services: Shared, visitor: Visitor, paging: Annotated[PageRequest, Depends(read_page(ROWS))]
) -> Response:
    """List the datasets that the visitor may see, newest first, with their budgets."""
    with services.database.read() as session:
        found = datasets.list_page(session, access.choose_key_filter(visitor), paging.after_id("ds"), paging.limit + 1)
        overviews = list_overviews(session, services.ledger, visitor, found[: paging.limit])
        owners = auth.read_names(session, {each.owner_id for each in found} - {visitor.id})

    def view(dataset: Dataset) -> Row:
        return _make_row(dataset, owners.get(dataset.owner_id, ""), overviews.get(dataset.id))

    page = make_page(found, paging, lambda each: each.id, view)
    return render(
        request,
        "populations",
        visitor,
        twins=(f"/v1/datasets?limit={paging.limit}",),
        hatch=HATCH,
        rows=page.items,
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
    )


def _make_row(dataset: Dataset, owner: str, overview: Overview | None) -> Row:
    if overview is None:
        return Row(dataset, owner, None, Markup(""), None, None, None)
    budget = overview.budget
    label = (
        f"Of a limit of {format_number(budget.limit.epsilon)}: {format_number(budget.spent.epsilon)} spent, "
        f"{format_number(budget.reserved.epsilon)} reserved"
    )
    bar = draw_bar(budget.spent.epsilon, budget.reserved.epsilon, budget.limit.epsilon, label)
    return Row(dataset, owner, budget, bar, overview.more_like_last, overview.lasts, overview.frozen_at)
