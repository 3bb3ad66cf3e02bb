"""``PUT /v1/datasets/{id}/content``, and the router of all uploads."""

from functools import partial

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from app.audit.journal import record
from app.auth.caller import Caller, Owner
from app.auth.service import check_still_valid, take_turn
from app.datasets import access
from app.datasets.schemas import DatasetDetail
from app.datasets.uploads import announcements, documentation, resumable, service
from app.datasets.uploads.arrival import arrive
from app.datasets.uploads.parts import Part, claim_whole
from app.datasets.views import make_detail
from app.http.errors.openapi import make_problem_responses
from app.http.requests.routing import make_router
from app.services import Services, Shared
from app.vault.writer import UploadWriter

router = make_router("/v1/datasets/{dataset_id}", "datasets", "unauthenticated", "dependency_unavailable")
_REFUSALS = (
    "forbidden",
    "not_found",
    "state_conflict",
    "invalid_request",
    "content_too_large",
    "unsupported_media_type",
    "digest_mismatch",
    "dependency_unavailable",
)


@router.put(
    "/content", status_code=202, openapi_extra=documentation.CONTENT, responses=make_problem_responses(*_REFUSALS)
)
async def put_content(request: Request, services: Shared, caller: Owner, dataset_id: str) -> DatasetDetail:
    """Upload a content as a raw body stream; an older content stays in force until this one is ready."""
    part = await run_in_threadpool(_claim_whole, services, caller, dataset_id, request.headers)
    return await arrive(part, request.stream(), partial(_keep_whole, services, caller, dataset_id, part))


def _claim_whole(services: Services, caller: Caller, dataset_id: str, headers: Headers) -> Part:
    with services.database.write() as tx:
        take_turn(tx, caller.id)  # before the dataset is locked, as at every count
        access.lock_changeable(tx, caller, dataset_id)
        media_type = announcements.parse_media_type(headers.get("content-type", ""))
        upload = service.begin(tx, services, caller, dataset_id, media_type)
        return claim_whole(tx, services, upload, announcements.parse_body_headers(headers))


def _keep_whole(services: Services, caller: Caller, dataset_id: str, part: Part, writer: UploadWriter) -> DatasetDetail:
    size = part.publish(writer)
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, caller.expires_at)
        dataset = access.lock_changeable(tx, caller, dataset_id)
        service.complete(tx, services, dataset, part.keep(tx, size))
        record(tx)
        return make_detail(tx, services.ledger, dataset)


router.routes.extend(resumable.router.routes)
