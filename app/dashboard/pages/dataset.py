"""One dataset: its declaration, the state of its table, its jobs and its releases."""

from typing import Final

from fastapi import Request
from starlette.responses import Response

from app.auth import repository as auth
from app.dashboard.job_progress import list_progress
from app.dashboard.rendering import render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import Visitor
from app.datasets import access, views
from app.datasets.remedies import REMEDIES
from app.datasets.schemas import DatasetDetail
from app.jobs import service as jobs
from app.jobs.repository import ENDED
from app.privacy.relation import IN_WORDS
from app.releases import service as releases
from app.services import Shared

ROWS: Final = 20
COLUMNS: Final = 200
router = make_page_router()


@router.get("/datasets/{dataset_id}")
def show_dataset(request: Request, services: Shared, visitor: Visitor, dataset_id: str) -> Response:
    """Show a dataset's declared facts. Only its owner sees the outcome of the last upload."""
    with services.database.read() as session:
        dataset = access.find_visible(session, visitor, dataset_id)
        view = views.make_view(session, services.ledger, visitor, dataset)
        listed = jobs.list_page(session, visitor, dataset_id=dataset_id, status=None, before=None, limit=ROWS + 1)
        names = jobs.read_names(session, visitor, listed[:ROWS])
        key_names = auth.read_names(session, view.shared_with) if isinstance(view, DatasetDetail) else {}
        published = releases.list_page(session, visitor, dataset_id=dataset_id, before=None, limit=ROWS + 1)
    is_running = any(job.status not in ENDED for job in listed[:ROWS])
    is_owner = dataset.owner_id == visitor.id
    detail = view if is_owner and isinstance(view, DatasetDetail) else None
    return render(
        request,
        "dataset",
        visitor,
        twins=(f"/v1/datasets/{dataset_id}",),
        dataset=view,
        deleted_at=dataset.deleted_at,
        detail=detail,
        remedy=REMEDIES.get(detail.rejection.code) if detail is not None and detail.rejection is not None else None,
        has_receipt=is_owner and dataset.deletion_receipt is not None,
        key_names=key_names,
        shared_with=view.shared_with if isinstance(view, DatasetDetail) else None,
        columns=view.columns[:COLUMNS],
        relation=IN_WORDS,
        jobs=list_progress(listed[:ROWS]),
        names=names,
        is_running=is_running,
        script="live.mjs" if is_running else None,
        releases=[(release, _describe_grade(release.body)) for release in published[:ROWS]],
        more_jobs=len(listed) > ROWS,
        more_releases=len(published) > ROWS,
    )


def _describe_grade(body: dict[str, object]) -> str:
    reliability = body.get("reliability")
    return str(reliability.get("grade", "")) if isinstance(reliability, dict) else ""
