"""``/v1/datasets/{id}/budget``, its ``/ledger`` and its ``/refusals``."""

from app.audit.journal import record
from app.auth.caller import Admin, AnyCaller, Owner
from app.budgets import service
from app.budgets.schemas import BudgetView, EntryView, LimitBody, RefusalView, UnfreezeBody
from app.budgets.views import make_entry_views, make_refusal_views
from app.http.errors.openapi import make_problem_responses
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.services import Shared

router = make_router(
    "/v1/datasets/{dataset_id}", "budgets", "unauthenticated", "not_found", "state_conflict", "dependency_unavailable"
)


@router.get("/budget", response_model_exclude_none=True)
def read_budget(services: Shared, caller: AnyCaller, dataset_id: str) -> BudgetView:
    """Show the limit, the spent and reserved cost, and the largest remaining job.

    The owner, administrators and auditors see all allocations. Other callers see their allocation only.
    """
    with services.database.read() as session:
        return BudgetView.model_validate(service.read_budget(session, services.ledger, caller, dataset_id))


@router.put("/budget", response_model_exclude_none=True, responses=make_problem_responses("forbidden"))
def change_budget(services: Shared, caller: Owner, dataset_id: str, body: LimitBody) -> BudgetView:
    """Set a new total limit.

    A lower limit takes effect at once; it cannot be below the cost that is spent. A limit above the highest so far
    opens a tranche. All costs are then stated at the new delta, so their epsilon is a little smaller.
    """
    with services.database.write() as tx:
        changed = service.change_limit(tx, services.ledger, caller, dataset_id, body)
        record(tx)
        return BudgetView.model_validate(changed)


@router.post(
    "/unfreeze", response_model_exclude_none=True, responses=make_problem_responses("forbidden", "invalid_request")
)
def unfreeze_account(services: Shared, caller: Admin, dataset_id: str, body: UnfreezeBody) -> BudgetView:
    """End the freeze of the dataset's account, unless tampering was its cause."""
    with services.database.write() as tx:
        unfrozen = service.unfreeze(tx, services.ledger, caller, dataset_id, body.reason)
        record(tx, reason=body.reason)
        return BudgetView.model_validate(unfrozen)


@router.get("/ledger", responses=make_problem_responses("forbidden"))
def read_ledger(services: Shared, caller: AnyCaller, dataset_id: str, paging: Paging) -> Page[EntryView]:
    """List the entries of the account's hash chain, newest first."""
    with services.database.read() as session:
        before = paging.after_sequence()
        rows = service.list_entries(session, services.ledger, caller, dataset_id, limit=paging.limit + 1, before=before)
        views = make_entry_views(session, rows)
        return make_page(views, paging, lambda entry: entry.sequence, lambda entry: entry)


@router.get("/refusals", responses=make_problem_responses("forbidden"))
def list_refusals(services: Shared, caller: AnyCaller, dataset_id: str, paging: Paging) -> Page[RefusalView]:
    """List the jobs that the budget refused, newest first.

    A refusal is listed within about a second. Repeated refusals of one key are one item with a count, which is complete
    after a minute.
    """
    with services.database.read() as session:
        before = paging.after_id("aud")
        rows = service.list_refused_jobs(
            session, services.ledger, caller, dataset_id, limit=paging.limit + 1, before=before
        )
        page = make_page(rows, paging, lambda each: each.id, lambda each: each)
        return Page(items=make_refusal_views(session, page.items), next_cursor=page.next_cursor)
