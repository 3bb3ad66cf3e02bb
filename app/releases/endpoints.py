"""``/v1/releases`` and ``/v1/keys``. Releases are public, immutable and cacheable."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from app.auth.caller import MaybeCaller
from app.http.errors.openapi import make_problem_responses
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.releases import service
from app.releases.http.cache import PublicReleases
from app.releases.http.formats import MEDIA_TYPES, STORED_NAMES, Part
from app.releases.http.reads import ROUTES
from app.releases.http.representation import ReadRequest, Reply, make_cache_control
from app.releases.models import Release
from app.releases.schemas import BeliefFormat, CertificateView, Format, KeyView, ReleaseView
from app.services import Services, Shared, VerificationKey
from app.vault.store import ObjectStore

router = make_router("/v1", "releases", "dependency_unavailable")
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_BYTES = {"text/csv": "age,intercept,y,weight\r\n0.25,1.0,1,412.5\r\n", "application/vnd.apache.parquet": "PAR1…"}
_BYTES |= {"application/x-npz": "PK…"}
_JSON_POINTS = {
    "schema": {"type": "object", "required": ["columns", "rows"]},
    "example": {"columns": ["age", "intercept", "y", "weight"], "rows": [[0.25, 1.0, 1, 412.5]]},
}
_BLOCK = {
    "type": "object",
    "description": "A distribution of the model's parameters.",
    "required": ["name", "family", "arrays"],
    "properties": {
        "name": {
            "type": "string",
            "description": "`posterior`, or `noise`: the distribution of the error in the posterior's mean.",
        },
        "family": {"type": "string", "description": "Family of the distribution: `normal`."},
        "arrays": {
            "type": "object",
            "description": (
                "Arrays of a normal distribution: `names` of the parameters, `mean`, and `covariance` as a list of "
                "rows. A distribution without correlations has `variance` instead of `covariance`."
            ),
        },
    },
}
_JSON_BELIEF = {
    "schema": {
        "type": "object",
        "required": ["blocks"],
        "properties": {
            "blocks": {"type": "array", "description": "Distributions, each with its name.", "items": _BLOCK}
        },
    },
    "example": {
        "blocks": [
            {
                "name": "noise",
                "family": "normal",
                "arrays": {
                    "names": ["age", "intercept"],
                    "mean": [0.0, 0.0],
                    "covariance": [[0.0031, -0.0004], [-0.0004, 0.0017]],
                },
            }
        ]
    },
}


def _describe_part(description: str, part: Part, as_json: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Make the ``responses`` of a read of ``part``; ``as_json`` describes its JSON."""
    media_types = [MEDIA_TYPES[name] for name in STORED_NAMES[part]]
    binary = {each: {**_BINARY, "example": _BYTES[each]} for each in media_types if each in _BYTES}
    return {
        200: {"description": description, "content": {**binary, "application/json": as_json}},
        206: {"description": "One range of the bytes."},
        304: {"description": "The caller already has this representation."},
        **make_problem_responses(
            "not_found", "not_acceptable", "precondition_failed", "range_not_satisfiable", "invalid_request"
        ),
    }


_JSON_GROUPS = {
    "schema": {
        "type": "object",
        "required": ["blocks"],
        "properties": {
            "blocks": {
                "type": "array",
                "description": "One block, `groups`, of the family `group-weights`.",
                "items": {
                    "type": "object",
                    "required": ["name", "family", "arrays"],
                    "properties": {
                        "name": {"type": "string", "description": "`groups`."},
                        "family": {"type": "string", "description": "`group-weights`."},
                        "arrays": {
                            "type": "object",
                            "description": (
                                "By group, in declared order: `names`, `labels` (one for each of the columns "
                                "`values`), `weight`, `strength`, `agreement`, `above_noise`, and a row of "
                                "`answers`. `draws` has a row of `parameters` for each column of `answers`. "
                                "`noise` is the standard deviation of each answer."
                            ),
                        },
                    },
                },
            }
        },
    },
    "example": {
        "blocks": [
            {
                "name": "groups",
                "family": "group-weights",
                "arrays": {
                    "names": ["sex=f", "sex=m"],
                    "values": ["sex"],
                    "labels": [["f"], ["m"]],
                    "weight": [2.1, 0.0],
                    "strength": [41.0, 38.5],
                    "agreement": [0.93, 0.93],
                    "above_noise": [1.0, 1.0],
                    "noise": [1.7],
                    "parameters": ["age", "intercept"],
                    "draws": [[0.4, -1.0], [0.7, -1.2]],
                    "answers": [[40.1, -40.1], [37.9, -37.9]],
                },
            }
        ]
    },
}
_POINTS = _describe_part("The points.", Part.POINTS, _JSON_POINTS)
_BELIEF = _describe_part("The belief.", Part.BELIEF, _JSON_BELIEF)
_GROUPS = _describe_part("The weights of groups.", Part.GROUPS, _JSON_GROUPS)


@router.get("/releases")
def list_releases(
    services: Shared,
    caller: MaybeCaller,
    paging: Paging,
    dataset_id: Annotated[str | None, Query(max_length=200)] = None,
) -> Page[ReleaseView]:
    """List public releases, newest first.

    With an API key, the list also contains the releases of datasets that the key may see.
    """
    with services.database.read() as session:
        before, limit = paging.after_id("rel"), paging.limit + 1
        rows = service.list_page(session, caller, dataset_id=dataset_id, before=before, limit=limit)
        return make_page(rows, paging, lambda release: release.id, _view)


def _find_readable(services: Shared, caller: MaybeCaller, release_id: str) -> Release:
    with services.database.read() as session:
        return service.find_readable(session, caller, release_id)


Readable = Annotated[Release, Depends(_find_readable)]


@router.get("/releases/{release_id}", response_model=ReleaseView, responses=make_problem_responses("not_found"))
def read_release(release: Readable) -> JSONResponse:
    """Show the metadata, model, design, reliability, diagnostics and certificate of a release."""
    return JSONResponse(_view(release).model_dump(mode="json"), headers={"Cache-Control": make_cache_control(release)})


@router.get(
    "/releases/{release_id}/certificate", response_model=CertificateView, responses=make_problem_responses("not_found")
)
def read_certificate(release: Readable) -> JSONResponse:
    """Show the signed statement of how the release was made and of its cost."""
    return JSONResponse(release.certificate, headers={"Cache-Control": make_cache_control(release)})


@router.get("/keys")
def list_verification_keys(services: Shared) -> Page[KeyView]:
    """List the public keys that verify certificates, checkpoints and deletion receipts."""
    return Page[KeyView](items=[_key_view(key) for key in services.verification_keys], next_cursor=None)


Condition = Annotated[str | None, Header()]


def _parse_headers(
    accept: Condition = None,
    if_match: Condition = None,
    if_none_match: Condition = None,
    *,
    if_range: Condition = None,
    range: Condition = None,  # noqa: A002  (the header's name)
) -> ReadRequest:
    return ReadRequest(accept=accept, if_match=if_match, if_none_match=if_none_match, if_range=if_range, range=range)


RequestedHeaders = Annotated[ReadRequest, Depends(_parse_headers)]


def _parse_read(
    headers: RequestedHeaders,
    format: Annotated[Format | None, Query()] = None,  # noqa: A002  (the API's own word)
) -> ReadRequest:
    return replace(headers, format=format)


def _parse_belief_read(
    headers: RequestedHeaders,
    format: Annotated[BeliefFormat | None, Query()] = None,  # noqa: A002  (the API's own word)
) -> ReadRequest:
    return replace(headers, format=format)


RequestedRead = Annotated[ReadRequest, Depends(_parse_read)]
RequestedBeliefRead = Annotated[ReadRequest, Depends(_parse_belief_read)]


@router.get(ROUTES[Part.POINTS].removeprefix("/v1"), response_class=Response, responses=_POINTS)
def read_points(request: Request, services: Shared, release: Readable, read: RequestedRead) -> Response:
    """Download the points in the format that `format` or `Accept` names.

    Conditional requests and requests for one range of bytes are supported.
    """
    return _answer(request, services, release, Part.POINTS, read)


@router.head(ROUTES[Part.POINTS].removeprefix("/v1"), response_class=Response, responses=_POINTS)
def read_points_headers(request: Request, release: Readable, read: RequestedRead) -> Response:
    """Show the headers of the points without their bytes."""
    return _answer_headers(request, release, Part.POINTS, read)


@router.get(ROUTES[Part.BELIEF].removeprefix("/v1"), response_class=Response, responses=_BELIEF)
def read_belief(request: Request, services: Shared, release: Readable, read: RequestedBeliefRead) -> Response:
    """Download the belief: named distributions of the model's parameters.

    `posterior` is the posterior that the method releases, if it releases one. `noise` is the distribution of the error
    in the posterior's mean, by noise and by bounds on contributions. Add its covariance to the posterior's for
    intervals. A release of an earlier version has no belief (`not_found`). Requests are answered as for the points.
    """
    return _answer(request, services, release, Part.BELIEF, read)


@router.head(ROUTES[Part.BELIEF].removeprefix("/v1"), response_class=Response, responses=_BELIEF)
def read_belief_headers(request: Request, release: Readable, read: RequestedBeliefRead) -> Response:
    """Show the headers of the belief without its bytes."""
    return _answer_headers(request, release, Part.BELIEF, read)


@router.get(ROUTES[Part.GROUPS].removeprefix("/v1"), response_class=Response, responses=_GROUPS)
def read_groups(request: Request, services: Shared, release: Readable, read: RequestedBeliefRead) -> Response:
    """Download the weights of declared groups of rows.

    The weighted sum of the groups' log-likelihoods approximates the sum over all rows. `strength` is the root mean
    square of a group's log-likelihood over the draws, in nats, and `agreement` its correlation with that of the other
    groups. Only releases of `dp-groups` have groups (`not_found`). Requests are answered as for the points.
    """
    return _answer(request, services, release, Part.GROUPS, read)


@router.head(ROUTES[Part.GROUPS].removeprefix("/v1"), response_class=Response, responses=_GROUPS)
def read_groups_headers(request: Request, release: Readable, read: RequestedBeliefRead) -> Response:
    """Show the headers of the groups without their bytes."""
    return _answer_headers(request, release, Part.GROUPS, read)


def _answer(request: Request, services: Services, release: Release, part: Part, read: ReadRequest) -> Response:
    reply = _find_cache(request).remember(release, part).reply(read)
    content = b"" if reply.status == 304 else _read(services.areas.released, reply)
    return Response(content, reply.status, dict(reply.headers))


def _answer_headers(request: Request, release: Release, part: Part, read: ReadRequest) -> Response:
    reply = _find_cache(request).remember(release, part).reply(replace(read, range=None))
    return Response(None, reply.status, dict(reply.headers))


def _find_cache(request: Request) -> PublicReleases:
    cache = request.app.state.public_releases
    assert isinstance(cache, PublicReleases)
    return cache


def _read(store: ObjectStore, reply: Reply) -> bytes:
    with store.open(reply.representation.object) as file:
        if reply.part is None:
            return file.read()
        file.seek(reply.part.first)
        return file.read(reply.part.last - reply.part.first + 1)


def _view(release: Release) -> ReleaseView:
    root = f"/v1/releases/{release.id}"
    return ReleaseView(
        id=release.id,
        dataset_id=release.dataset_id,
        job_id=release.job_id,
        created_at=release.created_at,
        certificate=CertificateView.model_validate(release.certificate),
        links={"self": root, "certificate": f"{root}/certificate", **_link_parts(release, root)},
        **release.body,
    )


def _link_parts(release: Release, root: str) -> dict[str, str]:
    return {
        str(part): f"{root}/{part}"
        for part, names in STORED_NAMES.items()
        if not release.representations.keys().isdisjoint(names.values())
    }


def _key_view(key: VerificationKey) -> KeyView:
    return KeyView.model_validate(
        {"key_id": key.key_id, "algorithm": "ed25519", "use": key.use, "public_key": key.public_key}
    )
