"""``/v1/datasets/{id}/uploads``: uploads in parts, also by the tus protocol."""

from functools import partial

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from app.audit.journal import record
from app.auth.caller import Caller, Owner
from app.auth.service import check_still_valid, take_turn
from app.datasets import access
from app.datasets.schemas import DatasetDetail
from app.datasets.uploads import announcements, documentation, service, tus
from app.datasets.uploads.arrival import arrive, read_until_disconnect
from app.datasets.uploads.models import Upload
from app.datasets.uploads.parts import Part, claim
from app.datasets.uploads.schemas import UploadBody, UploadView
from app.datasets.uploads.tus_route import TusRoute
from app.datasets.views import make_detail
from app.http.errors.openapi import make_problem_responses
from app.http.requests.digests import parse_sha256_member
from app.http.requests.idempotency import Answer, Idempotent, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import find_methods, make_router
from app.services import Services, Shared
from app.vault.writer import UploadWriter

router = make_router(
    "/v1/datasets/{dataset_id}/uploads",
    "datasets",
    "unauthenticated",
    "dependency_unavailable",
    "precondition_failed",
)
router.route_class = TusRoute
_OWN = ("forbidden", "not_found", "state_conflict")
_IDEMPOTENT = ("idempotency_conflict", "idempotency_in_progress")
_BODY = ("invalid_request", "content_too_large", "unsupported_media_type", "digest_mismatch", "dependency_unavailable")


@router.options("", include_in_schema=False)
@router.options("/{upload_id}", include_in_schema=False)
def describe_server(request: Request, services: Shared) -> Response:
    """Answer with the methods of the address and the features of tus; no upload is looked up."""
    allowed = {"Allow": ", ".join(sorted(find_methods(request.app.routes, request.url.path)))}
    return Response(status_code=204, headers=allowed | tus.describe_server(services.limits.upload_bytes))


@router.post(
    "",
    status_code=201,
    response_model=UploadView,
    openapi_extra=documentation.CREATION,
    responses=make_problem_responses(*_OWN, *_IDEMPOTENT, "content_too_large", "unsupported_media_type"),
)
def begin_upload(
    services: Shared, caller: Owner, request: Idempotent, dataset_id: str, body: UploadBody
) -> JSONResponse:
    """Create an upload that can be resumed: send its bytes in parts, and complete it within 24 hours."""
    with services.database.write() as tx:

        def begin() -> Answer:
            take_turn(tx, caller.id)
            access.lock_changeable(tx, caller, dataset_id)
            media_type = announcements.parse_media_type(body.media_type)
            sha256 = None if body.digest is None else parse_sha256_member("/digest", body.digest)
            upload = service.begin(tx, services, caller, dataset_id, media_type, length=body.length, sha256=sha256)
            record(tx)
            place = f"/v1/datasets/{dataset_id}/uploads/{upload.id}"
            return Answer.of(201, _view(services, upload), {"Location": place} | tus.describe_upload(upload))

        return answer_once(tx, caller.id, request, begin)


@router.get("", responses=make_problem_responses("forbidden", "not_found"))
def list_uploads(services: Shared, caller: Owner, dataset_id: str, paging: Paging) -> Page[UploadView]:
    """List the open uploads, newest first. Complete, deleted and expired uploads are not open."""
    with services.database.read() as session:
        rows = service.open_uploads(session, caller, dataset_id, paging.after_id("up"), paging.limit + 1)
        return make_page(rows, paging, lambda upload: upload.id, partial(_view, services))


@router.get(
    "/{upload_id}",
    response_model=UploadView,
    responses=make_problem_responses("forbidden", "not_found") | {200: documentation.OFFSET},
)
def read_upload(services: Shared, caller: Owner, response: Response, dataset_id: str, upload_id: str) -> UploadView:
    """Read where an upload continues; HEAD answers with the headers alone."""
    with services.database.read() as session:
        upload = service.find(session, caller, dataset_id, upload_id)
    response.headers.update({"Cache-Control": "no-store"} | tus.describe_upload(upload))
    return _view(services, upload)


@router.patch(
    "/{upload_id}",
    status_code=204,
    openapi_extra=documentation.PART,
    responses=make_problem_responses(*_OWN, "offset_mismatch", *_BODY) | {204: documentation.OFFSET},
)
async def send_part(request: Request, services: Shared, caller: Owner, dataset_id: str, upload_id: str) -> Response:
    """Send the next bytes. A body with another digest is refused.

    If the connection breaks off, the bytes that arrived are stored for clients of tus, and discarded for others.
    """
    part = await run_in_threadpool(_claim_part, services, caller, dataset_id, upload_id, request.headers)
    body = read_until_disconnect(request.stream()) if tus.is_tus(request.headers) else request.stream()
    headers = await arrive(part, body, partial(_keep_part, services, caller, dataset_id, part))
    return Response(status_code=204, headers=headers)


def _claim_part(services: Services, caller: Caller, dataset_id: str, upload_id: str, headers: Headers) -> Part:
    with services.database.write() as tx:
        _, upload = service.lock_upload(tx, caller, dataset_id, upload_id)
        if tus.is_tus(headers):
            tus.check_part_type(headers)
            service.set_length(services, upload, tus.parse_length(headers))
        return claim(
            tx, services, upload, announcements.parse_offset(headers), announcements.parse_body_headers(headers)
        )


def _keep_part(services: Services, caller: Caller, dataset_id: str, part: Part, writer: UploadWriter) -> dict[str, str]:
    """Store the part; the headers that describe the upload afterwards."""
    if not writer.size:
        part.give_up()
        with services.database.read() as session:
            return tus.describe_upload(service.find(session, caller, dataset_id, part.upload_id))
    size = part.publish(writer)
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, caller.expires_at)
        access.lock_changeable(tx, caller, dataset_id)
        upload = part.keep(tx, size)
        record(tx)
        return tus.describe_upload(upload)


@router.delete("/{upload_id}", status_code=204, responses=make_problem_responses(*_OWN))
def end_upload(services: Shared, caller: Owner, dataset_id: str, upload_id: str) -> Response:
    """Delete an upload and all of its parts."""
    with services.database.write() as tx:
        service.end(tx, caller, dataset_id, upload_id)
        record(tx)
    return Response(status_code=204)


@router.post(
    "/{upload_id}/complete",
    status_code=202,
    response_model=DatasetDetail,
    responses=make_problem_responses(*_OWN, *_IDEMPOTENT, "offset_mismatch"),
)
def complete_upload(
    services: Shared, caller: Owner, request: Idempotent, dataset_id: str, upload_id: str
) -> JSONResponse:
    """Make the parts the dataset's next content; an older content stays in force until this one is ready."""
    with services.database.write() as tx:

        def complete() -> Answer:
            dataset, upload = service.lock_upload(tx, caller, dataset_id, upload_id)
            service.complete(tx, services, dataset, upload)
            record(tx)
            return Answer.of(202, make_detail(tx, services.ledger, dataset))

        return answer_once(tx, caller.id, request, complete)


def _view(services: Services, upload: Upload) -> UploadView:
    return UploadView(
        id=upload.id,
        dataset_id=upload.dataset_id,
        media_type=upload.media_type,
        length=upload.length,
        offset=upload.received,
        max_part_bytes=services.limits.part_bytes,
        created_at=upload.created_at,
        expires_at=upload.expires_at,
    )
