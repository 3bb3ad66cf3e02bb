"""The first page: the account of every population of which the visitor may see a dataset."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import Response

from app.auth import repository as auth
from app.budgets.populations import PopulationAccount, list_accounts
from app.dashboard.charts.bar import HATCH, draw_bar
from app.dashboard.paging import read_page
from app.dashboard.rendering import render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import Visitor
from app.dashboard.wording import format_number
from app.datasets.populations import Member, Population
from app.http.requests.pagination import PageRequest, make_page
from app.ledger import AccountOverview
from app.services import Shared

ROWS: Final = 25
_MOST_LISTED: Final = 6
_MOST_CHARACTERS: Final = 300
"""Names are listed until they have so many characters together, so that the page is small."""
router = make_page_router()


@dataclass(frozen=True, slots=True)
class Listed:
    """A dataset of a row. ``limit``: on epsilon, if it is lower than the account's."""

    dataset: Member
    limit: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One population with its account; public data has no account.

    Attributes:
        title: the population's name, or its only dataset's if it has none.
        lead: the dataset in the address of the account's page; it has the highest limit.
        listed: the datasets that the row lists; none for a dataset without a named population.
        more: the number of further datasets.
        owner: empty for the visitor's own.
    """

    title: str
    lead: Member
    listed: tuple[Listed, ...]
    more: int
    slots: int
    are_slots_equal: bool
    is_deleted: bool
    owner: str
    account: AccountOverview | None
    bar: Markup


@router.get("")
def show_populations(
    request: Request, services: Shared, visitor: Visitor, paging: Annotated[PageRequest, Depends(read_page(ROWS))]
) -> Response:
    """List the accounts of all visible datasets, newest datasets first."""
    with services.database.read() as session:
        before = paging.after_id("ds")
        found = list_accounts(session, services.ledger, visitor, before=before, limit=paging.limit + 1)
        owners = auth.read_names(session, {each.population.owner_id for each in found} - {visitor.id})

    def view(each: PopulationAccount) -> Row:
        return _make_row(each.population, owners.get(each.population.owner_id, ""), each.account)

    page = make_page(found, paging, lambda each: each.population.members[0].id, view)
    return render(
        request,
        "populations",
        visitor,
        twins=(f"/v1/populations?limit={paging.limit}",),
        hatch=HATCH,
        rows=page.items,
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
    )


def _make_row(population: Population, owner: str, account: AccountOverview | None) -> Row:
    members = population.members
    unnamed = next((each for each in members if each.id == population.name), None)
    is_alone = unnamed is not None and len(members) == 1
    listed = () if is_alone else tuple(_choose_listed(members, account))
    slots = max(each.slots for each in members)
    return Row(
        title=population.name if unnamed is None else unnamed.name,
        lead=_choose_lead(population.active or members, account),
        listed=listed,
        more=0 if is_alone else len(members) - len(listed),
        slots=slots,
        are_slots_equal=all(each.slots == slots for each in members),
        is_deleted=not population.active,
        owner=owner,
        account=account,
        bar=Markup("") if account is None else _draw_bar(account),
    )


def _choose_lead(members: Sequence[Member], account: AccountOverview | None) -> Member:
    """Choose the dataset with the highest limit.

    Its page of the account states the same amounts as the row.
    """
    limits = {} if account is None else account.limits
    return max(members, key=lambda each: limits.get(each.id, 0.0))


def _choose_listed(members: Sequence[Member], account: AccountOverview | None) -> Iterator[Listed]:
    """Choose the newest datasets, at least one."""
    characters = 0
    for member in members[:_MOST_LISTED]:
        characters += len(member.name)
        if characters > _MOST_CHARACTERS and member is not members[0]:
            return
        limit = None if account is None else account.limits[member.id]
        is_own = limit is not None and account is not None and limit < account.limit.epsilon
        yield Listed(member, limit if is_own else None)


def _draw_bar(account: AccountOverview) -> Markup:
    spent, reserved, limit = (each.epsilon for each in (account.spent, account.reserved, account.limit))
    label = (
        f"Of a limit of {format_number(limit)}: {format_number(spent)} spent, {format_number(reserved)} reserved, "
        f"{format_number(max(0.0, limit - spent - reserved))} left"
    )
    return draw_bar(spent, reserved, limit, label)
