"""Query parameters and lists."""

import re

import httpx
import pytest
from fastapi import FastAPI

from app.http.errors.validation_errors import PATTERNS
from tests.factories import rows
from tests.http.conftest import CANARY

PATH = "/v1/drawings"


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=ten",
        "limit=1.5",
        "limit=+5",
        "limit=%205",
        "limit=1_0",
        "limit=\u0665",
        "limit=",
        "limit=1&limit=2",
        "kind=toolong",
        "kind=%00",
        f"{CANARY}=1",
        f"kind={CANARY}",
        "Limit=5",
        "cursor=",
        "cursor=!",
        "cursor=AAAA",
        "cursor=ZHNfMDFqZDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA",
        f"cursor={CANARY}",
        "cursor=\u00e9",
    ],
)
def test_unknown_query_parameters_are_refused_and_not_quoted(drawings: httpx.Client, query: str) -> None:
    answer = drawings.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert CANARY not in answer.text
    assert answer.json()["errors"]


@pytest.mark.parametrize("limit", ["-1", "1.5", "ten"])
def test_a_limit_that_is_no_count_is_answered_with_the_bounds(drawings: httpx.Client, limit: str) -> None:
    (fault,) = drawings.get(PATH, params={"limit": limit}).json()["errors"]
    assert fault["message"] == "The query parameter 'limit': Use a whole number from 1 to 200, with digits only."


def test_a_route_without_parameters_refuses_any(drawings: httpx.Client) -> None:
    assert drawings.get("/health/live?verbose=1").json()["code"] == "invalid_request"


def test_pages_join_without_gap_or_overlap(drawings: httpx.Client) -> None:
    seen: list[int] = []
    query = {"limit": "3"}
    while True:
        answer = drawings.get(PATH, params=query).json()
        seen += answer["items"]
        if answer["next_cursor"] is None:
            break
        query["cursor"] = answer["next_cursor"]
    assert seen == [7, 6, 5, 4, 3, 2, 1]


def test_a_page_that_ends_with_the_last_row_is_the_last(drawings: httpx.Client) -> None:
    assert drawings.get(PATH, params={"limit": "7"}).json()["next_cursor"] is None


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "/query/limit"),
        ("limit=ten", "/query/limit"),
        ("limit=1&limit=2", "/query/limit"),
        ("cursor=!", "/query/cursor"),
        ("cursor=ZHNfMDFqZDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA", "/query/cursor"),
        ("kind=toolong", "/query/kind"),
        ("kind=%00", "/query/kind"),
        (f"{CANARY}=1", "/query"),
        (f"{CANARY}=1&{CANARY}=1", "/query"),
    ],
)
def test_a_fault_points_to_its_parameter(drawings: httpx.Client, query: str, pointer: str) -> None:
    """An unknown parameter is not named: the pointer is that of the query."""
    assert [fault["pointer"] for fault in drawings.get(f"{PATH}?{query}").json()["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("headers", "pointer"),
    [
        ([("Idempotency-Key", "a b\x7f")], "/header/idempotency-key"),
        ([("Idempotency-Key", "a"), ("Idempotency-Key", "b")], "/header/idempotency-key"),
    ],
)
def test_a_fault_points_to_its_header(
    drawings: httpx.Client, owner: rows.Key, headers: list[tuple[str, str]], pointer: str
) -> None:
    answer = drawings.post(PATH, headers=[*owner.headers.items(), *headers], json={})
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


def test_every_pattern_of_a_request_has_a_message(application: FastAPI) -> None:
    """A regular expression is no remedy for most callers."""
    patterns = set(re.findall(r"'pattern': (?:'([^']+)'|\"([^\"]+)\")", repr(application.openapi())))
    assert patterns
    assert {first or second for first, second in patterns} <= {repr(known)[1:-1] for known in PATTERNS}
    for words in PATTERNS.values():
        assert "[" not in words


@pytest.mark.parametrize("name", ["a\nb", "a\u202eb", "a\u2066b", "a\u2028b"])
def test_a_malformed_name_is_refused_in_words(client: httpx.Client, admin: rows.Key, name: str) -> None:
    body = {"name": name, "role": "owner"}
    fault = client.post("/v1/api-keys", headers=admin.headers, json=body).json()["errors"][0]
    assert fault == {"pointer": "/name", "message": "Use one line of text, without control characters."}


def test_the_root_describes_the_service(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.json()["name"] == "Corevault"
    for address in answer.json()["links"].values():
        assert client.get(address).status_code == 200
