"""``/v1/populations``: the accounts of the datasets that a caller may see."""

from typing import Final

from app.auth import repository as auth
from app.auth.caller import AnyCaller
from app.auth.schemas import KeyReference
from app.budgets.population_schemas import PopulationDataset, PopulationView
from app.budgets.populations import PopulationAccount, list_accounts
from app.budgets.schemas import CostView
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.ledger import AccountOverview
from app.services import Shared

_MOST_DATASETS: Final = 20
router = make_router("/v1/populations", "budgets", "unauthenticated", "dependency_unavailable")


@router.get("", operation_id="list_populations")
def list_populations(services: Shared, caller: AnyCaller, paging: Paging) -> Page[PopulationView]:
    """List the populations of the datasets that the caller may see, with their accounts.

    Those with the newest datasets are first.
    """
    with services.database.read() as session:
        before = paging.after_id("ds")
        found = list_accounts(session, services.ledger, caller, before=before, limit=paging.limit + 1)
        owners = auth.read_names(session, {each.population.owner_id for each in found})
    return make_page(found, paging, lambda each: each.population.members[0].id, lambda each: _make_view(each, owners))


def _make_view(found: PopulationAccount, owners: dict[str, str]) -> PopulationView:
    population, account = found.population, found.account
    members = population.members
    return PopulationView(
        population=population.name,
        owner=KeyReference(id=population.owner_id, name=owners[population.owner_id]),
        datasets=[
            PopulationDataset(
                id=each.id,
                name=each.name,
                slots=each.slots,
                limit=_limit_dataset(account, each.id),
                deleted=each.is_deleted,
            )
            for each in members[:_MOST_DATASETS]
        ],
        dataset_count=len(members),
        unit=dict(members[0].privacy_unit),
        slots=max(each.slots for each in members),
        **_state_costs(account),
        used_share=None if account is None else account.used_share,
        more_like_last=None if account is None else account.more_like_last,
        lasts_seconds=None if account is None or account.lasts is None else account.lasts.total_seconds(),
        frozen_at=None if account is None else account.frozen_at,
        deleted=not population.active,
    )


def _limit_dataset(account: AccountOverview | None, dataset_id: str) -> CostView | None:
    return None if account is None else CostView(epsilon=account.limits[dataset_id], delta=account.limit.delta)


def _state_costs(account: AccountOverview | None) -> dict[str, CostView | None]:
    names = ("limit", "spent", "reserved", "remaining")
    return {name: None if account is None else CostView.model_validate(getattr(account, name)) for name in names}
