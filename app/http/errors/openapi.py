"""How problems appear in the OpenAPI document: one schema, one example a code, grouped by status."""

from typing import Any

from fastapi import FastAPI

from app.errors import CorevaultError
from app.http.errors.codes import MEDIA_TYPE, PROBLEMS
from app.http.errors.problems import document

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(PROBLEMS)},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "message"],
                "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_UNREAD = ("content_too_large", "unsupported_media_type")
_UNWELCOME = ("unauthenticated", "forbidden", "rate_limited", "dependency_unavailable")
_EXTRA: dict[str, dict[str, Any]] = {
    "invalid_request": {"errors": [{"pointer": "/privacy/epsilon", "message": "Use a number greater than 0."}]},
    "budget_exceeded": {
        "requested": {"epsilon": 0.5, "delta": 1e-6},
        "epsilon_after": 2.13,
        "limit": {"epsilon": 2.0, "delta": 1e-6},
        "remaining": {"epsilon": 0.31, "delta": 1e-6},
    },
}


def problem_responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The ``responses`` argument of a route or router that may answer with these codes."""
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
        response["content"][MEDIA_TYPE]["examples"][code] = {"value": example(code)}
    return by_status


def example(code: str) -> dict[str, Any]:
    """A problem of this code, as a caller would see it."""
    declared = next(each for each in _classes(CorevaultError) if vars(each).get("code") == code)
    return document(declared(), "req_01jd0000000000000000000000") | _EXTRA.get(code, {})


def _classes(root: type[CorevaultError]) -> list[type[CorevaultError]]:
    return [root, *(found for child in root.__subclasses__() for found in _classes(child))]


def describe(app: FastAPI) -> None:
    """Serve an OpenAPI 3.1 document whose problems share one schema, in place of the framework's own errors."""
    generate = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = generate()
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            schemas["Problem"] = PROBLEM_SCHEMA
            schema["components"]["responses"] = {code: _response(code) for code in PROBLEMS}
            _exemplify(schemas)
            _refuse_bodies(schema["paths"])
            _refuse_callers(schema["paths"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # how FastAPI lets one replace it


def _response(code: str) -> dict[str, Any]:
    (response,) = problem_responses(code).values()
    return response


def _refuse_bodies(paths: dict[str, dict[str, Any]]) -> None:
    """Say of every JSON body that it may be too large, or no JSON: the routes themselves never see those."""
    for operations in paths.values():
        for operation in operations.values():
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                for status, response in problem_responses(*_UNREAD).items():
                    operation["responses"].setdefault(str(status), response)


def _refuse_callers(paths: dict[str, dict[str, Any]]) -> None:
    """Say of whatever takes a credential that it may be none, carry no role of ours, or come too often."""
    for operations in paths.values():
        for operation in operations.values():
            if operation.get("security"):
                for status, response in problem_responses(*_UNWELCOME).items():
                    operation["responses"].setdefault(str(status), response)


def _exemplify(schemas: dict[str, dict[str, Any]]) -> None:
    """Give lists the example that their items have."""
    for schema in schemas.values():
        properties = schema.get("properties", {})
        if set(properties) == {"items", "next_cursor"}:
            item = _example_of(properties["items"]["items"], schemas)
            schema.setdefault("examples", [{"items": [item], "next_cursor": None}])


def _example_of(schema: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> object:
    """The first example of a schema, of what it refers to, or of its first alternative."""
    first = schema.get("anyOf", [schema])[0]
    named = schemas[first["$ref"].rpartition("/")[2]] if "$ref" in first else first
    return named.get("examples", [None])[0]
