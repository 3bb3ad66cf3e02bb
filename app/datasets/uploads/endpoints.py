"""``PUT /v1/datasets/{id}/content`` and ``/v1/datasets/{id}/uploads``."""

from functools import partial
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers

from app.audit.journal import record
from app.auth.caller import Caller, Owner
from app.auth.service import check_still_valid, take_turn
from app.datasets import access
from app.datasets.schemas import DatasetDetail
from app.datasets.uploads import announcements, service
from app.datasets.uploads.arrival import arrive
from app.datasets.uploads.models import Upload
from app.datasets.uploads.parts import Part, claim, claim_whole
from app.datasets.uploads.schemas import UploadBody, UploadView
from app.datasets.views import detail
from app.http.errors.openapi import problem_responses
from app.http.requests.digests import sha256_of_member
from app.http.requests.idempotency import Answer, Idempotent, idempotent
from app.http.requests.pagination import Page, Paging, page
from app.http.requests.routing import api_router
from app.services import Services, Shared
from app.vault.writer import UploadWriter

router = api_router("/v1/datasets/{dataset_id}", "datasets", "unauthenticated", "dependency_unavailable")
_OWN = ("forbidden", "not_found", "state_conflict")
_IDEMPOTENT = ("idempotency_conflict", "idempotency_in_progress")
_BODY = ("invalid_request", "content_too_large", "unsupported_media_type", "digest_mismatch", "dependency_unavailable")
_FILES = {
    announcements.CSV: "age,hours,sex,income_gt_50k\r\n39,40,Male,0\r\n50,13,Female,1\r\n",
    announcements.PARQUET: "PAR1…",
    announcements.ARROW: "ARROW…",
}
_DIGEST: dict[str, Any] = {
    "name": "Content-Digest",
    "in": "header",
    "description": "RFC 9530, with a sha-256 digest of this body; a body with another one is not kept.",
    "schema": {"type": "string"},
    "example": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
}
_RAW_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file, as it is. CSV is UTF-8 with a header; columns come in any order.",
        "content": {
            media_type: {"schema": {"type": "string", "contentMediaType": media_type}, "example": example}
            for media_type, example in sorted(_FILES.items())
        },
    },
    "parameters": [_DIGEST],
}
_PART_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The next bytes of the file, whatever the media type of the request.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}, "example": "…"}},
    },
    "parameters": [
        _DIGEST,
        {
            "name": "Upload-Offset",
            "in": "header",
            "required": True,
            "description": "How many bytes are kept so far, which is where these begin.",
            "schema": {"type": "integer", "minimum": 0},
            "example": 67_108_864,
        },
    ],
}
_OFFSET: dict[str, Any] = {
    "headers": {
        "Upload-Offset": {
            "description": "How many bytes are kept.",
            "schema": {"type": "integer", "minimum": 0},
            "example": 67_108_864,
        }
    }
}


@router.put("/content", status_code=202, openapi_extra=_RAW_BODY, responses=problem_responses(*_OWN, *_BODY))
async def put_content(request: Request, services: Shared, caller: Owner, dataset_id: str) -> DatasetDetail:
    """Upload a new version of the table as the request body.

    The version before stays in use until the new one is ready.
    """
    part = await run_in_threadpool(_claim_whole, services, caller, dataset_id, request.headers)
    return await arrive(part, request.stream(), partial(_keep_whole, services, caller, dataset_id, part))


def _claim_whole(services: Services, caller: Caller, dataset_id: str, headers: Headers) -> Part:
    with services.database.write() as tx:
        take_turn(tx, caller.id)  # before the dataset is locked, as wherever something is counted
        access.changeable(tx, caller, dataset_id)
        media_type = announcements.media_type_of(headers.get("content-type", ""))
        upload = service.begin(tx, services, caller, dataset_id, media_type)
        return claim_whole(tx, services, upload, announcements.body_of(headers))


def _keep_whole(services: Services, caller: Caller, dataset_id: str, part: Part, writer: UploadWriter) -> DatasetDetail:
    size = part.publish(writer)
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, caller.expires_at)
        dataset = access.changeable(tx, caller, dataset_id)
        service.complete(tx, services, dataset, part.keep(tx, size))
        record(tx)
        return detail(tx, services.ledger, dataset)


@router.post(
    "/uploads",
    status_code=201,
    response_model=UploadView,
    responses=problem_responses(*_OWN, *_IDEMPOTENT, "content_too_large", "unsupported_media_type"),
)
def begin_upload(
    services: Shared, caller: Owner, request: Idempotent, dataset_id: str, body: UploadBody
) -> JSONResponse:
    """Begin a resumable upload.

    Send its bytes in parts, and complete it within 24 hours.
    """
    with services.database.write() as tx:

        def begin() -> Answer:
            take_turn(tx, caller.id)
            access.changeable(tx, caller, dataset_id)
            media_type = announcements.media_type_of(body.media_type)
            sha256 = None if body.digest is None else sha256_of_member("/digest", body.digest)
            upload = service.begin(tx, services, caller, dataset_id, media_type, length=body.length, sha256=sha256)
            record(tx)
            place = f"/v1/datasets/{dataset_id}/uploads/{upload.id}"
            return Answer.of(201, _view(services, upload), {"Location": place, "Upload-Offset": "0"})

        return idempotent(tx, caller.id, request, begin)


@router.get("/uploads", responses=problem_responses("forbidden", "not_found"))
def list_uploads(services: Shared, caller: Owner, dataset_id: str, paging: Paging) -> Page[UploadView]:
    """List the open uploads of a dataset, newest first."""
    with services.database.read() as session:
        rows = service.open_uploads(session, caller, dataset_id, paging.after_id("up"), paging.limit + 1)
        return page(rows, paging, lambda upload: upload.id, partial(_view, services))


@router.get(
    "/uploads/{upload_id}",
    response_model=UploadView,
    responses=problem_responses("forbidden", "not_found") | {200: _OFFSET},
)
def read_upload(services: Shared, caller: Owner, response: Response, dataset_id: str, upload_id: str) -> UploadView:
    """Show an upload and the offset at which it continues. HEAD returns the headers only."""
    with services.database.read() as session:
        upload = service.find(session, caller, dataset_id, upload_id)
    response.headers["Upload-Offset"] = str(upload.received)
    response.headers["Cache-Control"] = "no-store"
    if upload.length is not None:
        response.headers["Upload-Length"] = str(upload.length)
    return _view(services, upload)


@router.patch(
    "/uploads/{upload_id}",
    status_code=204,
    openapi_extra=_PART_BODY,
    responses=problem_responses(*_OWN, "offset_mismatch", *_BODY) | {204: _OFFSET},
)
async def send_part(request: Request, services: Shared, caller: Owner, dataset_id: str, upload_id: str) -> Response:
    """Send the next bytes of an upload.

    A body that is incomplete, or has another digest, is discarded.
    """
    part = await run_in_threadpool(_claim_part, services, caller, dataset_id, upload_id, request.headers)
    offset = await arrive(part, request.stream(), partial(_keep_part, services, caller, dataset_id, part))
    return Response(status_code=204, headers={"Upload-Offset": str(offset)})


def _claim_part(services: Services, caller: Caller, dataset_id: str, upload_id: str, headers: Headers) -> Part:
    with services.database.write() as tx:
        _, upload = service.lock_upload(tx, caller, dataset_id, upload_id)
        return claim(tx, services, upload, announcements.offset_of(headers), announcements.body_of(headers))


def _keep_part(services: Services, caller: Caller, dataset_id: str, part: Part, writer: UploadWriter) -> int:
    if not writer.size:
        part.give_up()
        return part.offset
    size = part.publish(writer)
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, caller.expires_at)
        access.changeable(tx, caller, dataset_id)
        upload = part.keep(tx, size)
        record(tx)
        return upload.received


@router.delete("/uploads/{upload_id}", status_code=204, responses=problem_responses(*_OWN))
def end_upload(services: Shared, caller: Owner, dataset_id: str, upload_id: str) -> Response:
    """End an upload and discard all its bytes."""
    with services.database.write() as tx:
        service.end(tx, caller, dataset_id, upload_id)
        record(tx)
    return Response(status_code=204)


@router.post(
    "/uploads/{upload_id}/complete",
    status_code=202,
    response_model=DatasetDetail,
    responses=problem_responses(*_OWN, *_IDEMPOTENT, "offset_mismatch"),
)
def complete_upload(
    services: Shared, caller: Owner, request: Idempotent, dataset_id: str, upload_id: str
) -> JSONResponse:
    """Make the uploaded bytes the next version of the table.

    The version before stays in use until the new one is ready.
    """
    with services.database.write() as tx:

        def complete() -> Answer:
            dataset, upload = service.lock_upload(tx, caller, dataset_id, upload_id)
            service.complete(tx, services, dataset, upload)
            record(tx)
            return Answer.of(202, detail(tx, services.ledger, dataset))

        return idempotent(tx, caller.id, request, complete)


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
