"""The operations of the API, and the positions of ids in them, from OpenAPI."""

from collections.abc import Iterator
from typing import Any

NAMING_QUERIES = frozenset({"dataset_id", "actor", "target", "cursor"})
NAMING_MEMBERS = frozenset({"shared_with", "allocations", "population"})
SCOPED_HEADERS = frozenset({"idempotency-key"})


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each operation, as in ``"GET /v1/jobs/{job_id}"``, with its description."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def positions(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield operation and position.

    A position is ``path:job_id``, ``query:dataset_id``, ``body:shared_with``, …, or ``none``.
    """
    for name, operation in operations(document):
        found = {*_parameters(operation), *_members(operation, document)}
        yield from ((name, position) for position in sorted(found) or ["none"])


def _parameters(operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        place, name = parameter["in"], parameter["name"].lower()
        named = place == "path" or (place == "query" and (name in NAMING_QUERIES or name.endswith("_id")))
        if named or (place == "header" and name in SCOPED_HEADERS):
            yield f"{place}:{name}"


def _members(operation: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
        if media_type == "application/json":
            for name in _properties(media["schema"], document):
                if name in NAMING_MEMBERS or name.endswith(("_id", "_ids")):
                    yield f"body:{name}"


def _properties(node: object, document: dict[str, Any]) -> Iterator[str]:
    """Yield the names of members at any depth, through references."""
    if isinstance(node, dict):
        if "$ref" in node:
            yield from _properties(document["components"]["schemas"][node["$ref"].rpartition("/")[2]], document)
        yield from node.get("properties", {})
        yield from (name for key, value in node.items() if key != "examples" for name in _properties(value, document))
    elif isinstance(node, list):
        yield from (name for each in node for name in _properties(each, document))
