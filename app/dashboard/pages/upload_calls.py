"""The calls of the upload page's script.

Each call has the effects and the errors of the API's operation with the same name.
"""

from fastapi import Depends, Request
from fastapi.responses import JSONResponse, Response

from app.dashboard.cross_site import check_same_site
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OwnerVisitor
from app.datasets import access, views
from app.datasets.remedies import REMEDIES
from app.datasets.uploads import resumable
from app.datasets.uploads.schemas import UploadBody, UploadView
from app.http.requests.bodies import ResponseBody
from app.http.requests.idempotency import Idempotent
from app.services import Shared

router = make_page_router()
_FROM_HERE = [Depends(check_same_site)]


class ContentState(ResponseBody):
    """The state of the newest content. ``remedy`` depends only on the code of a rejection."""

    version: int | None
    status: str
    columns: list[str]
    remedy: str | None


@router.post("/datasets/{dataset_id}/uploads", status_code=201, response_model=UploadView, dependencies=_FROM_HERE)
def begin_upload(
    services: Shared, visitor: OwnerVisitor, request: Idempotent, dataset_id: str, body: UploadBody
) -> JSONResponse:
    """Create an upload that can be resumed."""
    return resumable.begin_upload(services, visitor, request, dataset_id, body)


@router.get("/datasets/{dataset_id}/uploads/{upload_id}")
def read_upload(
    services: Shared, visitor: OwnerVisitor, response: Response, dataset_id: str, upload_id: str
) -> UploadView:
    """Read where an upload continues."""
    return resumable.read_upload(services, visitor, response, dataset_id, upload_id)


@router.patch("/datasets/{dataset_id}/uploads/{upload_id}", status_code=204, dependencies=_FROM_HERE)
async def send_part(
    request: Request, services: Shared, visitor: OwnerVisitor, dataset_id: str, upload_id: str
) -> Response:
    """Send the next bytes."""
    return await resumable.send_part(request, services, visitor, dataset_id, upload_id)


@router.delete("/datasets/{dataset_id}/uploads/{upload_id}", status_code=204, dependencies=_FROM_HERE)
def end_upload(services: Shared, visitor: OwnerVisitor, dataset_id: str, upload_id: str) -> Response:
    """Delete an upload and all of its parts."""
    return resumable.end_upload(services, visitor, dataset_id, upload_id)


@router.post("/datasets/{dataset_id}/uploads/{upload_id}/complete", status_code=202, dependencies=_FROM_HERE)
def complete_upload(
    services: Shared, visitor: OwnerVisitor, request: Idempotent, dataset_id: str, upload_id: str
) -> Response:
    """Make the parts the dataset's next content."""
    resumable.complete_upload(services, visitor, request, dataset_id, upload_id)
    return Response(status_code=202)


@router.get("/datasets/{dataset_id}/content")
def read_content_state(services: Shared, visitor: OwnerVisitor, dataset_id: str) -> ContentState:
    """Read the state of the newest content, for its owner."""
    with services.database.read() as session:
        detail = views.make_detail(session, services.ledger, access.find_owned(session, visitor, dataset_id))
    rejection = detail.rejection
    return ContentState(
        version=None if detail.content is None else detail.content.version,
        status="none" if detail.content is None else detail.content.status,
        columns=[] if rejection is None else rejection.columns,
        remedy=None if rejection is None else REMEDIES.get(rejection.code),
    )
