"""Delete a dataset after a confirmation, and download the signed receipt."""

from fastapi import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.auth.caller import Caller
from app.context import note_refusal
from app.dashboard.forms import NO_MISTAKES, Mistakes, SentForm
from app.dashboard.rendering import PREFIX, Twin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OwnerVisitor
from app.datasets import access, deletion
from app.datasets.models import Dataset
from app.errors import InvalidRequest, NotFound
from app.http.errors.problems import find_status
from app.services import Shared

router = make_page_router()


@router.get("/datasets/{dataset_id}/delete")
def confirm_deletion(request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str) -> Response:
    """Ask whether to delete a dataset."""
    with services.database.read() as session:
        dataset = access.find_owned(session, visitor, dataset_id)
    if dataset.deleted_at is not None:
        return RedirectResponse(f"{PREFIX}/datasets/{dataset_id}", 303)
    return _render(request, visitor, dataset, "", NO_MISTAKES)


@router.post("/datasets/{dataset_id}/delete")
def delete_dataset(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, form: SentForm
) -> Response:
    """Delete a dataset whose name was typed. A second form changes nothing."""
    with services.database.read() as session:
        dataset = access.find_owned(session, visitor, dataset_id)
    typed = form.text("confirmed_name")
    if typed.split() != dataset.name.split():  # a browser shows several blanks as one
        mistakes = Mistakes({"confirmed_name": "Type the name of the dataset exactly as it is shown."})
        note_refusal(InvalidRequest.code)
        return _render(request, visitor, dataset, typed, mistakes, status=find_status(InvalidRequest()))
    deletion.delete(services, visitor, dataset_id)
    return RedirectResponse(f"{PREFIX}/datasets/{dataset_id}", 303)


@router.get("/datasets/{dataset_id}/receipt")
def download_receipt(services: Shared, visitor: OwnerVisitor, dataset_id: str) -> Response:
    """Download the receipt of a deletion as JSON."""
    with services.database.read() as session:
        receipt = access.find_owned(session, visitor, dataset_id).deletion_receipt
    if receipt is None:
        raise NotFound
    headers = {"Content-Disposition": f'attachment; filename="deletion-{dataset_id}.json"'}
    return JSONResponse(receipt, headers=headers)


def _render(
    request: Request, visitor: Caller, dataset: Dataset, typed: str, mistakes: Mistakes, *, status: int = 200
) -> Response:
    twins = (Twin(f"/v1/datasets/{dataset.id}", "DELETE"),)
    return render(
        request, "dataset_delete", visitor, status=status, twins=twins, dataset=dataset, typed=typed, mistakes=mistakes
    )
