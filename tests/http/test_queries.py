"""Query parameters and lists."""

import httpx
import pytest

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
def test_other_queries_are_refused_without_being_quoted(drawings: httpx.Client, query: str) -> None:
    answer = drawings.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert CANARY not in answer.text
    assert answer.json()["errors"]


def test_routes_without_parameters_take_none(drawings: httpx.Client) -> None:
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
