"""``/v1/releases`` and ``/v1/keys``: public, immutable, cacheable."""

from typing import Annotated, Any

from fastapi import Depends, Header, Query
from fastapi.responses import JSONResponse, Response

from app.auth.caller import MaybeCaller
from app.errors import PreconditionFailed, RangeNotSatisfiable
from app.http.digests import digest_header
from app.http.openapi import problem_responses
from app.http.pagination import Page, Paging, page
from app.http.routing import api_router
from app.releases import service
from app.releases.models import Release
from app.releases.negotiation import Slice, Unsatisfiable, choose, not_modified, precondition_holds, requested_range
from app.releases.rendering import MEDIA_TYPES
from app.releases.schemas import CertificateView, Format, KeyView, ReleaseView
from app.services import Shared, VerificationKey
from app.vault.store import ObjectStore

router = api_router("/v1", "releases", "dependency_unavailable")
_FOREVER = "public, max-age=31536000, immutable"
_KEYED = "private, no-cache"
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_EXAMPLES = {
    "text/csv": "age,intercept,y,weight\r\n0.25,1.0,1,412.5\r\n",
    "application/vnd.apache.parquet": "PAR1…",
    "application/x-npz": "PK…",
}
_JSON_POINTS = {
    "schema": {"type": "object", "required": ["columns", "rows"]},
    "example": {"columns": ["age", "intercept", "y", "weight"], "rows": [[0.25, 1.0, 1, 412.5]]},
}
_POINTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The points.",
        "content": {
            **{media_type: {**_BINARY, "example": example} for media_type, example in _EXAMPLES.items()},
            "application/json": _JSON_POINTS,
        },
    },
    206: {"description": "One range of the points."},
    304: {"description": "Not modified."},
    **problem_responses(
        "not_found", "not_acceptable", "precondition_failed", "range_not_satisfiable", "invalid_request"
    ),
}


class OutOfRange(RangeNotSatisfiable):
    """Says how long the representation is."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.headers = {"Content-Range": f"bytes */{length}"}


@router.get("/releases")
def list_releases(
    services: Shared,
    caller: MaybeCaller,
    paging: Paging,
    dataset_id: Annotated[str | None, Query(max_length=200)] = None,
) -> Page[ReleaseView]:
    """Public releases, and with a key also those on datasets that it sees."""
    with services.database.read() as session:
        before, limit = paging.after_id("rel"), paging.limit + 1
        rows = service.page(session, caller, dataset_id=dataset_id, before=before, limit=limit)
        return page(rows, paging, lambda release: release.id, _view)


def _readable(services: Shared, caller: MaybeCaller, release_id: str) -> Release:
    with services.database.read() as session:
        return service.readable(session, caller, release_id)


Readable = Annotated[Release, Depends(_readable)]


@router.get("/releases/{release_id}", response_model=ReleaseView, responses=problem_responses("not_found"))
def get_release(release: Readable) -> JSONResponse:
    """Metadata, design, diagnostics and certificate."""
    return JSONResponse(_view(release).model_dump(mode="json"), headers={"Cache-Control": _caching(release)})


@router.get(
    "/releases/{release_id}/certificate", response_model=CertificateView, responses=problem_responses("not_found")
)
def get_certificate(release: Readable) -> JSONResponse:
    """The signed statement of what was promised."""
    return JSONResponse(release.certificate, headers={"Cache-Control": _caching(release)})


@router.get("/keys")
def list_keys(services: Shared) -> Page[KeyView]:
    """The keys that verify certificates and receipts."""
    return Page[KeyView](items=[_key_view(key) for key in services.verification_keys], next_cursor=None)


def _chosen(
    release: Readable,
    format: Annotated[Format | None, Query()] = None,  # noqa: A002  (the API's own word)
    accept: Annotated[str | None, Header()] = None,
) -> str:
    return format or choose(
        accept, {name: MEDIA_TYPES[name] for name in MEDIA_TYPES if name in release.representations}
    )


Condition = Annotated[str | None, Header()]


def _expected(release: Readable, chosen: Annotated[str, Depends(_chosen)], if_match: Condition = None) -> str:
    if not precondition_holds(if_match, _etag(release, chosen)):
        raise PreconditionFailed
    return chosen


Chosen = Annotated[str, Depends(_expected)]


@router.get("/releases/{release_id}/points", response_class=Response, responses=_POINTS)
def get_points(
    services: Shared,
    release: Readable,
    chosen: Chosen,
    if_none_match: Condition = None,
    *,
    if_range: Condition = None,
    range: Annotated[str | None, Header()] = None,  # noqa: A002  (the header's name)
) -> Response:
    """The points in the representation that ``Accept`` or ``format`` asks for; conditional and range requests."""
    stored = release.representations[chosen]
    headers = _headers(release, chosen)
    if not_modified(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=_without(headers, "Content-Type"))
    try:
        part = requested_range(range, if_range, headers["ETag"], stored["length"])
    except Unsatisfiable:
        raise OutOfRange(stored["length"]) from None
    content = _read(services.store, stored, part)
    if part is None:
        return Response(content, headers=headers)
    return Response(content, 206, {**headers, "Content-Range": f"bytes {part.first}-{part.last}/{stored['length']}"})


@router.head("/releases/{release_id}/points", response_class=Response, responses=_POINTS)
def head_points(release: Readable, chosen: Chosen, if_none_match: Condition = None) -> Response:
    """The headers of the whole representation."""
    headers = _headers(release, chosen)
    if not_modified(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=_without(headers, "Content-Type"))
    return Response(headers={**headers, "Content-Length": str(release.representations[chosen]["length"])})


def _headers(release: Release, chosen: str) -> dict[str, str]:
    stored = release.representations[chosen]
    media_type = stored["media_type"]
    return {
        "Content-Type": f"{media_type}; charset=utf-8" if media_type == "text/csv" else media_type,
        "ETag": _etag(release, chosen),
        "Repr-Digest": digest_header(bytes.fromhex(stored["sha256"])),
        "Vary": "Accept" if release.public else "Accept, Authorization",
        "Cache-Control": _caching(release),
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{release.id}.{chosen}"',
    }


def _etag(release: Release, chosen: str) -> str:
    return f'"{release.representations[chosen]["sha256"]}"'


def _without(headers: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}


def _caching(release: Release) -> str:
    return _FOREVER if release.public else _KEYED


def _read(store: ObjectStore, stored: dict[str, Any], part: Slice | None) -> bytes:
    with store.open(stored["object"]) as file:
        if part is None:
            return file.read()
        file.seek(part.first)
        return file.read(part.last - part.first + 1)


def _view(release: Release) -> ReleaseView:
    root = f"/v1/releases/{release.id}"
    return ReleaseView(
        id=release.id,
        dataset_id=release.dataset_id,
        job_id=release.job_id,
        created_at=release.created_at,
        certificate=CertificateView.model_validate(release.certificate),
        links={"self": root, "points": f"{root}/points", "certificate": f"{root}/certificate"},
        **release.body,
    )


def _key_view(key: VerificationKey) -> KeyView:
    return KeyView.model_validate(
        {"key_id": key.key_id, "algorithm": "ed25519", "use": key.use, "public_key": key.public_key}
    )
