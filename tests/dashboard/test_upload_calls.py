"""The calls of the upload page's script: the API's uploads, with a session in place of a key."""

import base64
import hashlib
from typing import Any

import httpx
import pytest

from tests.dashboard.conftest import Open
from tests.factories import rows
from tests.factories.worker import House

TABLE = b"age,hours,sex,income_gt_50k\n20,30,Male,1\n"
JSON = {"Accept": "application/json"}
BODY = {"media_type": "text/csv"}
ELSEWHERE = {"Sec-Fetch-Site": "cross-site"}


def _digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


@pytest.fixture
def dataset(house: House, owner: rows.Key) -> str:
    body = {"name": "visits", "sensitivity": "public", "columns": rows.COLUMNS, "slots": 9}
    with house.client() as client:
        answer = client.post("/v1/datasets", json={**body, "privacy_unit": {"kind": "row"}}, headers=owner.headers)
    return str(answer.json()["id"])


@pytest.fixture
def browser(browse: Open, owner: rows.Key) -> httpx.Client:
    browser = browse(owner)
    browser.headers.update(JSON)
    return browser


def _begin(browser: httpx.Client, dataset: str, content: bytes = TABLE) -> str:
    body = {"media_type": "text/csv", "length": len(content), "digest": _digest(content)}
    answer = browser.post(f"/dashboard/datasets/{dataset}/uploads", json=body)
    assert answer.status_code == 201, answer.text
    return f"/dashboard/datasets/{dataset}/uploads/{answer.json()['id']}"


def _send(browser: httpx.Client, upload: str, offset: int, part: bytes, **headers: str) -> httpx.Response:
    given = {"Upload-Offset": str(offset), "Content-Digest": _digest(part), **headers}
    return browser.patch(upload, content=part, headers=given)


def test_parts_become_a_table(house: House, browser: httpx.Client, dataset: str) -> None:
    upload = _begin(browser, dataset)
    assert _send(browser, upload, 0, TABLE[:10]).status_code == 204
    assert browser.get(upload).json()["offset"] == 10
    page = browser.get(f"/dashboard/datasets/{dataset}/upload").text
    assert upload.rpartition("/")[2] in page
    assert f'data-length="{len(TABLE)}"' in page
    assert _send(browser, upload, 10, TABLE[10:]).status_code == 204
    assert browser.post(f"{upload}/complete").status_code == 202
    place = f"/dashboard/datasets/{dataset}/content"
    assert browser.get(place).json()["status"] == "received"
    house.work()
    assert browser.get(place).json() == {"version": 1, "status": "ready", "columns": [], "remedy": None}


def test_a_rejected_table_has_its_remedy(house: House, browser: httpx.Client, dataset: str) -> None:
    upload = _begin(browser, dataset, b"age\n1\n")
    _send(browser, upload, 0, b"age\n1\n")
    browser.post(f"{upload}/complete")
    house.work()
    state = browser.get(f"/dashboard/datasets/{dataset}/content").json()
    assert (state["status"], state["remedy"][:29]) == ("rejected", "A declared column is missing.")
    assert set(state["columns"]) == {"hours", "sex", "income_gt_50k"}


@pytest.mark.parametrize("method", ["begin", "send", "complete", "end", "delete"])
def test_no_call_is_accepted_from_elsewhere(browser: httpx.Client, dataset: str, method: str) -> None:
    upload = _begin(browser, dataset)
    _send(browser, upload, 0, TABLE)
    calls: dict[str, Any] = {
        "begin": lambda: browser.post(f"/dashboard/datasets/{dataset}/uploads", json=BODY, headers=ELSEWHERE),
        "send": lambda: _send(browser, upload, len(TABLE), b"x", **ELSEWHERE),
        "complete": lambda: browser.post(f"{upload}/complete", headers=ELSEWHERE),
        "end": lambda: browser.delete(upload, headers=ELSEWHERE),
        "delete": lambda: browser.post(f"{upload}/delete", data={"confirm": "1"}, headers=ELSEWHERE),
    }
    answer = calls[method]()
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert browser.get(upload).json()["offset"] == len(TABLE)


def test_scripts_get_problems_as_json_and_visitors_as_pages(browser: httpx.Client, dataset: str) -> None:
    upload = _begin(browser, dataset)
    answer = _send(browser, upload, 5, TABLE)
    assert (answer.status_code, answer.json()["code"]) == (409, "offset_mismatch")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "script-src" not in answer.headers["content-security-policy"]
    browser.headers["Accept"] = "text/html"
    answer = _send(browser, upload, 5, TABLE)
    assert (answer.status_code, answer.headers["content-type"]) == (409, "text/html; charset=utf-8")


def test_a_call_without_a_session_is_refused_as_json(browser: httpx.Client, dataset: str) -> None:
    upload = _begin(browser, dataset)
    browser.cookies.clear()
    answer = _send(browser, upload, 0, TABLE)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


def test_an_unfinished_upload_is_deleted_by_a_form(browser: httpx.Client, dataset: str) -> None:
    upload = _begin(browser, dataset)
    browser.headers["Accept"] = "text/html"
    answer = browser.post(f"{upload}/delete", data={"confirm": "1"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/dashboard/datasets/{dataset}/upload")
    assert upload.rpartition("/")[2] not in browser.get(answer.headers["location"]).text


def test_only_uploads_with_a_digest_are_offered_to_continue(
    house: House, browser: httpx.Client, dataset: str, owner: rows.Key
) -> None:
    """Otherwise the bytes of two files could become one table."""
    with house.client() as client:
        place = f"/v1/datasets/{dataset}/uploads"
        client.post(place, json={"media_type": "text/csv", "length": 7}, headers=owner.headers)
    assert 'data-length=""' in browser.get(f"/dashboard/datasets/{dataset}/upload").text
