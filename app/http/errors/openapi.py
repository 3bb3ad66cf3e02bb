"""The service's additions to the OpenAPI document that FastAPI generates.

All problems share one schema, with one example for each error code. Operations get a summary, parameters a description.
"""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.errors import CorevaultError, Forbidden
from app.http.errors.codes import MEDIA_TYPE, PROBLEMS
from app.http.errors.problems import make_document

_COST: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "epsilon": {"type": "number", "description": "Epsilon of differential privacy, at the delta below."},
        "delta": {"type": "number", "description": "Delta of differential privacy."},
    },
}
PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "An error as problem details (RFC 9457). It contains no text of the caller and no data.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "URI of the kind of problem."},
        "title": {"type": "string", "description": "Name of the kind of problem."},
        "status": {"type": "integer", "description": "HTTP status of the response."},
        "detail": {"type": "string", "description": "The cause of the problem, and a remedy."},
        "code": {"type": "string", "enum": sorted(PROBLEMS), "description": "Stable code, for programs."},
        "request_id": {"type": "string", "description": "Id of the request, as in the header X-Request-Id."},
        "errors": {
            "type": "array",
            "description": "Every fault of an invalid request (`invalid_request`).",
            "items": {
                "type": "object",
                "required": ["pointer", "message"],
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": (
                            "JSON pointer (RFC 6901) to the wrong member of the body, or the place and name of a "
                            "parameter, as in `/query/limit`."
                        ),
                    },
                    "message": {"type": "string", "description": "How to repair the fault."},
                },
            },
        },
        "reason": {
            "type": "string",
            "enum": ["limit", "cap", "allocation"],
            "description": "The limit that the job would exceed, as in a quote (`budget_exceeded`).",
        },
        "requested": _COST | {"description": "Cost of the refused job alone (`budget_exceeded`)."},
        "epsilon_after": {
            "type": "number",
            "description": "Composed cost of the account after the refused job (`budget_exceeded`).",
        },
        "limit": _COST | {"description": "Limit that the job would exceed (`budget_exceeded`)."},
        "remaining": _COST | {"description": "Largest single job that would be admitted (`budget_exceeded`)."},
        "offset": {
            "type": "integer",
            "description": "Number of bytes that the server keeps; the next part starts here (`offset_mismatch`).",
        },
    },
}
_PARAMETERS: Final = {
    "accept": "Media types that the caller accepts, as in RFC 9110.",
    "action": "Only entries of this action, as in `POST /v1/jobs`.",
    "actor": "Only entries of this key.",
    "content-digest": "SHA-256 digest of the body, as in RFC 9530.",
    "after": "Sequence number of the last entry that the caller has; 0: the first part.",
    "cursor": "Value of `next_cursor` of the page before; absent: the first page.",
    "dataset_id": "Id of the dataset.",
    "format": "Format of the answer. It takes precedence over `Accept`.",
    "idempotency-key": (
        "Name of this request, chosen by the caller. A repeated request with the same name has no second effect."
    ),
    "if-match": "Answer only if the representation has one of these entity tags.",
    "if-none-match": "Answer with 304 if the representation has one of these entity tags.",
    "if-range": "Use `Range` only if the representation has this entity tag.",
    "job_id": "Id of the job.",
    "key_id": "Id of the API key.",
    "last-event-id": "Id of the last event that the caller received; the stream continues after it.",
    "limit": "Most items on the page.",
    "outcome": "Only entries with this outcome.",
    "range": "The range of bytes to return, as in RFC 9110.",
    "release_id": "Id of the release.",
    "since": "Only entries at this time or later.",
    "status": "Only jobs in this state.",
    "target": "Only entries about the object with this id.",
    "until": "Only entries before this time.",
    "upload_id": "Id of the upload.",
}
"""Descriptions of parameters by name. A name means the same in every operation."""
_BODY_REFUSALS = ("content_too_large", "unsupported_media_type")
_CALLER_REFUSALS = ("unauthenticated", "forbidden", "rate_limited", "dependency_unavailable")
_REQUEST: Final = "req_01jd0000000000000000000000"
_EXTRA: dict[str, dict[str, Any]] = {
    "forbidden": {"detail": Forbidden.to("analyst", ("owner",)).detail},
    "invalid_request": {"errors": [{"pointer": "/privacy/epsilon", "message": "Use a number greater than 0."}]},
    "budget_exceeded": {
        "reason": "limit",
        "requested": {"epsilon": 0.5, "delta": 1e-6},
        "epsilon_after": 2.13,
        "limit": {"epsilon": 2.0, "delta": 1e-6},
        "remaining": {"epsilon": 0.31, "delta": 1e-6},
    },
}


def make_problem_responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Make the ``responses`` argument of a route or router from error codes."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in dict.fromkeys(codes):
        status, title = PROBLEMS[code]
        response = by_status.setdefault(
            status,
            {
                "description": title,
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}},
            },
        )
        response["content"][MEDIA_TYPE]["examples"][code] = {"value": make_example(code)}
    return by_status


def make_example(code: str) -> dict[str, Any]:
    """Make an example of a problem with this code."""
    declared = next(each for each in _classes(CorevaultError) if vars(each).get("code") == code)
    return make_document(declared(), _REQUEST) | _EXTRA.get(code, {})


def _classes(root: type[CorevaultError]) -> list[type[CorevaultError]]:
    return [root, *(each for child in root.__subclasses__() for each in _classes(child))]


def describe(app: FastAPI) -> None:
    """Complete the application's OpenAPI 3.1 document, and replace the framework's error schemas."""
    generate = app.openapi

    def generate_described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generate()
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            schemas["Problem"] = PROBLEM_SCHEMA
            schema["components"]["responses"] = {code: _response(code) for code in PROBLEMS}
            _describe_lists(schemas)
            for operation in _operations(schema):
                _add_body_refusals(operation)
                _add_caller_refusals(operation)
                _describe_operation(operation)
            _state_roles(app, schema)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = generate_described  # type: ignore[method-assign]  # how FastAPI lets one replace it


def _response(code: str) -> dict[str, Any]:
    (response,) = make_problem_responses(code).values()
    return response


def _operations(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for operations in schema["paths"].values():
        yield from operations.values()


def _add_body_refusals(operation: dict[str, Any]) -> None:
    """Add the refusals of JSON bodies. No route declares them, because bodies are read before the route."""
    if "application/json" in operation.get("requestBody", {}).get("content", {}):
        _add_responses(operation, _BODY_REFUSALS)


def _add_caller_refusals(operation: dict[str, Any]) -> None:
    """Add the refusals of credentials: not valid, without a role, or used too often."""
    if operation.get("security"):
        _add_responses(operation, _CALLER_REFUSALS)


def _add_responses(operation: dict[str, Any], codes: tuple[str, ...]) -> None:
    for status, response in make_problem_responses(*codes).items():
        operation["responses"].setdefault(str(status), response)


def _describe_operation(operation: dict[str, Any]) -> None:
    """Make the summary from the operation's id, and describe the parameters."""
    operation["summary"] = str(operation["operationId"]).replace("_", " ").capitalize().replace(" api ", " API ")
    for parameter in operation.get("parameters", []):
        if (description := _PARAMETERS.get(parameter["name"].lower())) is not None:
            parameter.setdefault("description", description)


def _state_roles(app: FastAPI, schema: dict[str, Any]) -> None:
    """State the roles that an operation needs, if its dependencies require some."""
    for route in app.routes:
        if isinstance(route, APIRoute) and (roles := sorted(_find_roles(route.dependant))):
            for method in route.methods or ():
                operation = schema["paths"][route.path_format][method.lower()]
                operation["description"] += f"\n\nIt needs a key of the role {' or '.join(roles)}."
                examples = operation["responses"]["403"]["content"][MEDIA_TYPE]["examples"]
                other = next(each for each in ("analyst", "auditor") if each not in roles)
                examples["forbidden"] = {"value": make_document(Forbidden.to(other, roles), _REQUEST)}


def _find_roles(dependant: Dependant) -> set[str]:
    own = getattr(dependant.call, "roles", ())
    return {*own, *(role for each in dependant.dependencies for role in _find_roles(each))}


def _describe_lists(schemas: dict[str, dict[str, Any]]) -> None:
    """Give each list a description, and the example of its items."""
    for schema in schemas.values():
        properties = schema.get("properties", {})
        if set(properties) == {"items", "next_cursor"}:
            schema.setdefault("description", "One page of a list, newest first.")
            item = _example_of(properties["items"]["items"], schemas)
            schema.setdefault("examples", [{"items": [item], "next_cursor": None}])


def _example_of(schema: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> object:
    """Return an example of a schema.

    It is the first one of the schema, of the schema that it refers to, or of its first alternative.
    """
    first = schema.get("anyOf", [schema])[0]
    named = schemas[first["$ref"].rpartition("/")[2]] if "$ref" in first else first
    return named.get("examples", [None])[0]
