"""``/v1/datasets``."""

from fastapi.responses import JSONResponse

from app.audit.journal import record
from app.auth.caller import AnyCaller, Owner
from app.datasets import access, declaration, deletion, repository, service
from app.datasets.schemas import (
    DatasetBody,
    DatasetDetail,
    DatasetPatch,
    DatasetView,
    DeclaredDataset,
    DeletionReceipt,
)
from app.datasets.views import make_detail, make_view, make_views
from app.http.errors.openapi import make_problem_responses
from app.http.requests.idempotency import Answer, Idempotent, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.services import Shared

Shown = DatasetDetail | DatasetView
router = make_router("/v1/datasets", "datasets", "unauthenticated", "dependency_unavailable")
_OWN = ("forbidden", "not_found", "state_conflict")


@router.post(
    "",
    status_code=201,
    response_model=DeclaredDataset | DatasetDetail,
    responses=make_problem_responses("forbidden", "state_conflict", "idempotency_conflict", "idempotency_in_progress"),
)
def declare_dataset(services: Shared, caller: Owner, request: Idempotent, body: DatasetBody) -> JSONResponse:
    """Declare a dataset and open its budget account.

    The answer has `warnings` if properties are allowed, but may be mistakes.
    """
    with services.database.write() as tx:

        def declare() -> Answer:
            dataset = service.declare(tx, services, caller, body)
            record(tx, dataset.id)
            detail = make_detail(tx, services.ledger, dataset)
            warnings = declaration.list_warnings(body)
            shown = DeclaredDataset(**dict(detail), warnings=warnings) if warnings else detail
            return Answer.of(201, shown, {"Location": f"/v1/datasets/{dataset.id}"})

        return answer_once(tx, caller.id, request, declare)


@router.get("")
def list_datasets(services: Shared, caller: AnyCaller, paging: Paging) -> Page[Shown]:
    """List the datasets that the caller may see, newest first.

    Callers see the datasets that they own or that are shared with them. Auditors and administrators see all.
    """
    with services.database.read() as session:
        rows = repository.list_page(session, access.choose_key_filter(caller), paging.after_id("ds"), paging.limit + 1)
        shown = dict(zip(rows, make_views(session, services.ledger, caller, rows), strict=True))
        return make_page(rows, paging, lambda dataset: dataset.id, shown.__getitem__)


@router.get("/{dataset_id}", responses=make_problem_responses("not_found"))
def read_dataset(services: Shared, caller: AnyCaller, dataset_id: str) -> Shown:
    """Read a dataset's declared facts.

    Its owner, auditors and administrators also see the outcome of the last upload.
    """
    with services.database.read() as session:
        return make_view(session, services.ledger, caller, access.find_visible(session, caller, dataset_id))


@router.patch("/{dataset_id}", responses=make_problem_responses(*_OWN))
def change_dataset(services: Shared, caller: Owner, dataset_id: str, body: DatasetPatch) -> DatasetDetail:
    """Change a dataset's description, shares, allocations, or whether later releases are public."""
    with services.database.write() as tx:
        dataset = service.change(tx, services.ledger, caller, dataset_id, body)
        record(tx)
        return make_detail(tx, services.ledger, dataset)


@router.delete("/{dataset_id}", responses=make_problem_responses("forbidden", "not_found"))
def delete_dataset(services: Shared, caller: Owner, dataset_id: str) -> DeletionReceipt:
    """Delete a dataset: destroy its data key and return a signed receipt; the ledger stays."""
    return DeletionReceipt.model_validate(deletion.delete(services, caller, dataset_id))
