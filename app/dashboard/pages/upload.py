"""The page on which an owner uploads a table. Its script checks the table in the browser first."""

import json
from typing import Annotated, Final

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.dashboard.forms import SentForm
from app.dashboard.rendering import PREFIX, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import OwnerVisitor
from app.datasets import access, views
from app.datasets.declaration import LARGEST_STRONG_EPSILON, RESERVED_NAME
from app.datasets.uploads import service
from app.inference.core.design import RESERVED
from app.services import Shared

MOST_UPLOADS: Final = 20
router = make_page_router()


@router.get("/datasets/{dataset_id}/upload")
def show_page(
    request: Request,
    services: Shared,
    visitor: OwnerVisitor,
    dataset_id: str,
    declared: Annotated[str, Query(max_length=1)] = "",
) -> Response:
    """Show the page; ``declared=1`` confirms the declaration."""
    with services.database.read() as session:
        dataset = access.find_owned(session, visitor, dataset_id)
        uploads = service.open_uploads(session, visitor, dataset_id, None, MOST_UPLOADS)
        detail = views.make_detail(session, services.ledger, dataset)
    return render(
        request,
        "upload",
        visitor,
        twins=(f"/v1/datasets/{dataset_id}/uploads",),
        script="upload.mjs",
        dataset=dataset,
        facts=json.dumps(
            {
                "columns": dataset.columns,
                "unit": dataset.privacy_unit.get("column"),
                "slots": dataset.slots,
                "most_bytes": services.limits.upload_bytes,
                "part_bytes": services.limits.part_bytes,
            }
        ),
        uploads=uploads,
        has_content=detail.content is not None,
        was_declared=declared == "1",
        reserved=[column["name"] for column in dataset.columns if column["name"] in RESERVED],
        reserved_in_words=RESERVED_NAME,
        is_weak=detail.budget is not None and detail.budget.epsilon > LARGEST_STRONG_EPSILON,
    )


@router.post("/datasets/{dataset_id}/uploads/{upload_id}/delete")
def delete_upload(services: Shared, visitor: OwnerVisitor, dataset_id: str, upload_id: str, _: SentForm) -> Response:
    """Delete an open upload and all of its parts."""
    with services.database.write() as tx:
        service.end(tx, visitor, dataset_id, upload_id)
        record(tx)
    return RedirectResponse(f"{PREFIX}/datasets/{dataset_id}/upload", 303)
