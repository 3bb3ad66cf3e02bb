"""``/v1/datasets/{id}/what-if`` and the verification of ``/v1/datasets/{id}/ledger``. They change nothing."""

from typing import Annotated, Final

from fastapi import Query

from app.auth.caller import AnyCaller, Owner
from app.budgets import service, what_if
from app.budgets.risks import bound_cost, bound_limit
from app.budgets.schemas import AllocationView, CostView, LimitBody
from app.budgets.views import make_entry_views
from app.budgets.what_if_schemas import (
    AllocationQuestion,
    ChainView,
    ComparisonView,
    JobOutlookView,
    JobQuestion,
    OutlookView,
    RiskView,
    VerificationView,
)
from app.datasets import access
from app.http.errors.openapi import make_problem_responses
from app.http.requests.routing import make_router
from app.services import Shared

CHAIN_ROWS: Final = 200
router = make_router(
    "/v1/datasets/{dataset_id}", "budgets", "unauthenticated", "not_found", "state_conflict", "dependency_unavailable"
)
_REFUSALS = make_problem_responses("forbidden", "invalid_request")


@router.post("/what-if/job", operation_id="preview_job", responses=make_problem_responses("invalid_request"))
def preview_job(services: Shared, caller: AnyCaller, dataset_id: str, body: JobQuestion) -> JobOutlookView:
    """Show the consequence of a job that costs a stated epsilon. It reads no row and changes nothing."""
    with services.database.read() as session:
        budget, preview = what_if.preview_job(session, services.ledger, caller, dataset_id, body.epsilon)
    before = budget.spent.epsilon + budget.reserved.epsilon
    return JobOutlookView(
        cost=CostView(epsilon=preview.cost_epsilon, delta=preview.cost_delta),
        affordable=preview.affordable,
        reason=None if preview.obstacle is None else preview.obstacle.value,
        more_like_this=preview.more_like_this,
        epsilon_before=before,
        epsilon_after=preview.epsilon_after,
        risk_before=RiskView.model_validate(bound_cost(before, budget.spent.delta)),
        risk_after=RiskView.model_validate(bound_cost(preview.epsilon_after, preview.cost_delta)),
    )


@router.post("/what-if/limit", operation_id="preview_limit", responses=_REFUSALS)
def preview_limit(services: Shared, caller: Owner, dataset_id: str, body: LimitBody) -> ComparisonView:
    """Show the consequence of another limit. It changes nothing."""
    compared = what_if.preview_limit(services.database, services.ledger, caller, dataset_id, body)
    return ComparisonView(before=_make_view(compared.before), after=_make_view(compared.after))


@router.post("/what-if/allocation", operation_id="preview_allocation", responses=_REFUSALS)
def preview_allocation(services: Shared, caller: Owner, dataset_id: str, body: AllocationQuestion) -> ComparisonView:
    """Show the consequence of an allocation. It changes nothing."""
    with services.database.read() as session:
        access.find_owned(session, caller, dataset_id)
        budget = service.read_budget(session, services.ledger, caller, dataset_id)
    patch = what_if.make_patch(budget, body.key_id, body.epsilon)
    compared = what_if.preview_allocations(
        services.database, services.ledger, caller, dataset_id, patch, key_id=body.key_id
    )
    return ComparisonView(
        before=_make_view(compared.before, body.key_id), after=_make_view(compared.after, body.key_id)
    )


@router.get("/ledger/verification", operation_id="verify_ledger", responses=make_problem_responses("forbidden"))
def verify_ledger(services: Shared, caller: AnyCaller, dataset_id: str) -> VerificationView:
    """Recompute the account from its entries, and compare the result with its balance.

    A process verifies one chain at a time, and refuses others with `rate_limited`.
    """
    with services.database.read() as session:
        verifies = service.verify_chain(session, services.ledger, caller, dataset_id)
        newest = service.list_entries(session, services.ledger, caller, dataset_id, limit=1, before=None)
        views = make_entry_views(session, newest)
    return VerificationView(verifies=verifies, newest=views[0] if views else None)


@router.get("/ledger/chain", operation_id="read_chain", responses=make_problem_responses("forbidden"))
def read_chain(
    services: Shared, caller: AnyCaller, dataset_id: str, after: Annotated[int, Query(ge=0, le=2**53 - 1)] = 0
) -> ChainView:
    """Read the entries after number `after`, in order.

    They have everything that their hashes and signatures cover, so a caller can verify the chain without the server.
    """
    with services.database.read() as session:
        part = service.read_chain(session, services.ledger, caller, dataset_id, after=after, limit=CHAIN_ROWS)
    return ChainView.model_validate(part)


def _make_view(outlook: what_if.Outlook, key_id: str | None = None) -> OutlookView:
    budget = outlook.budget
    allocation = next((each for each in budget.allocations or () if each.key_id == key_id), None)
    costs = {
        name: CostView.model_validate(getattr(budget, name)) for name in ("limit", "spent", "reserved", "remaining")
    }
    return OutlookView(
        **costs,
        more_like_last=outlook.more_like_last,
        allocation=None if allocation is None else AllocationView.model_validate(allocation),
        risk=RiskView.model_validate(bound_limit(outlook.guarantee)),
    )
