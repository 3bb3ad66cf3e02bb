"""The OpenAPI document."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.http.errors.codes import PROBLEMS


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert answer.status_code == 200
    return dict(answer.json())


def _operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _schemas_of(media: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    schema = media.get("schema", {})
    names = [each["$ref"].rpartition("/")[2] for each in schema.get("anyOf", [schema]) if "$ref" in each]
    return [document["components"]["schemas"][name] for name in names] or [schema]


def _has_example(media: dict[str, Any], document: dict[str, Any]) -> bool:
    exemplified = any("examples" in schema or "example" in schema for schema in _schemas_of(media, document))
    return exemplified or bool(media.get("example") or media.get("examples"))


def _properties(node: object, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property below ``node`` with its place; examples are data, not schemas."""
    if isinstance(node, dict):
        for name, schema in node.get("properties", {}).items():
            yield f"{place}.{name}", schema
        for name, child in node.items():
            if name not in {"example", "examples"}:
                yield from _properties(child, f"{place}.{name}")
    elif isinstance(node, list):
        for child in node:
            yield from _properties(child, place)


def test_every_property_has_a_description(document: dict[str, Any]) -> None:
    properties = dict(_properties(document, ""))
    assert len(properties) > 200
    assert [place for place, schema in properties.items() if not schema.get("description")] == []


def test_every_schema_has_a_description(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []


def test_every_parameter_has_a_description(document: dict[str, Any]) -> None:
    assert [
        f"{name}: {parameter['name']}"
        for name, operation in _operations(document)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ] == []


def test_every_operation_has_a_plain_id_and_a_description(document: dict[str, Any]) -> None:
    """An id is unique: a verb and its object, as in ``submit_job``."""
    operations = _operations(document)
    ids = [operation["operationId"] for _, operation in operations]
    assert len(set(ids)) == len(ids)
    assert [each for each in ids if re.fullmatch(r"[a-z]+(_[a-z]+)+", each) is None] == []
    assert [name for name, operation in operations if not operation.get("summary")] == []
    assert [name for name, operation in operations if not operation.get("description")] == []


def test_operations_for_some_roles_state_them(document: dict[str, Any]) -> None:
    needed = {"declare_dataset": "owner", "create_api_key": "admin", "submit_job": "analyst or owner"}
    operations = {each["operationId"]: each for _, each in _operations(document)}
    for name, roles in needed.items():
        sentence = f"needs a key of the role {roles}"
        assert f"It {sentence}." in operations[name]["description"]
        refusal = operations[name]["responses"]["403"]["content"]["application/problem+json"]["examples"]["forbidden"]
        assert sentence in refusal["value"]["detail"]
    assert "needs a key" not in operations["read_job"]["description"]


def test_it_is_openapi_3_1(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")


def test_every_body_has_an_example(document: dict[str, Any]) -> None:
    missing = []
    for name, operation in _operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        media = [each for body in bodies for each in body.get("content", {}).values()]
        missing += [name for each in media if not _has_example(each, document)]
    assert missing == []


def test_every_list_shows_an_item(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        for example in schema.get("examples", []):
            assert None not in example.get("items", []), name


def test_every_error_has_an_example(document: dict[str, Any]) -> None:
    shown = document["components"]["responses"]
    assert {code: set(each["content"]["application/problem+json"]["examples"]) for code, each in shown.items()} == {
        code: {code} for code in PROBLEMS
    }


def test_every_json_body_documents_413_415_and_422(document: dict[str, Any]) -> None:
    for name, operation in _operations(document):
        if "application/json" in operation.get("requestBody", {}).get("content", {}):
            assert {"413", "415", "422"} <= operation["responses"].keys(), name
            media = operation["responses"]["422"]["content"]["application/problem+json"]
            assert "invalid_request" in media["examples"], name


def test_every_operation_with_a_credential_documents_its_refusals(document: dict[str, Any]) -> None:
    named = [(name, operation) for name, operation in _operations(document) if operation.get("security")]
    assert {"get /v1/releases", "get /metrics", "post /v1/jobs"} <= {name for name, _ in named}
    assert {
        name for name, operation in named if not {"401", "403", "429", "503"} <= operation["responses"].keys()
    } == set()


def test_every_problem_has_an_example_with_its_status_and_code(document: dict[str, Any]) -> None:
    for _, operation in _operations(document):
        for status, response in operation["responses"].items():
            for name, example in (
                response.get("content", {}).get("application/problem+json", {}).get("examples", {}).items()
            ):
                assert (str(example["value"]["status"]), example["value"]["code"]) == (status, name)


def test_the_problem_schema_lists_every_code(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["Problem"]["properties"]["code"]["enum"] == sorted(PROBLEMS)
    assert not {"HTTPValidationError", "ValidationError"} & set(schemas)


def test_every_reference_is_declared(document: dict[str, Any]) -> None:
    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [each for value in node.values() for each in references(value)]
        return [each for value in node for each in references(value)] if isinstance(node, list) else []

    declared = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= declared


def test_no_parameter_or_property_is_a_seed(document: dict[str, Any]) -> None:
    """W7: no caller can set or read a seed. The number of a Fourier term selects public frequencies, and no noise."""
    schemas = {name: each for name, each in document["components"]["schemas"].items() if name != "FourierBody"}
    members = {name for schema in schemas.values() for name in schema.get("properties", {})}
    parameters = {each["name"] for _, operation in _operations(document) for each in operation.get("parameters", [])}
    assert not [name for name in members | parameters if "seed" in name.lower()]
