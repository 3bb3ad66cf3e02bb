"""Error pages, and the headers that every page has."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError

from app.dashboard.problem_pages import POLICY
from app.db import Database
from app.http.middleware.addresses import AllowedHosts
from app.main import create_app
from app.services import Services
from tests.dashboard.browser import code_of, open_browser
from tests.factories import rows

STATIC = "/dashboard/static/"


@pytest.fixture
def browser(application: FastAPI, owner: rows.Key) -> Iterator[httpx.Client]:
    with open_browser(application, owner) as browser:
        yield browser


def _check_headers(answer: httpx.Response) -> None:
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-request-id"].startswith("req_")


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere() -> None:
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "script-src" not in POLICY
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/nowhere", "/dashboard/sign-in", "/dashboard?x=1"])
def test_every_answer_has_the_security_headers(browser: httpx.Client, path: str) -> None:
    answer = browser.get(path)
    _check_headers(answer)
    assert answer.headers["cache-control"] == "no-store"


def test_the_api_keeps_its_own_errors(browser: httpx.Client) -> None:
    answer = browser.get("/v1/nowhere")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "content-security-policy" not in answer.headers


@pytest.mark.parametrize("path", ["/dashboard/nowhere", "/dashboard//", "/dashboard/static/other.css"])
def test_unknown_pages_are_not_found(browser: httpx.Client, path: str) -> None:
    answer = browser.get(path)
    assert (answer.status_code, code_of(answer)) == (404, "not_found")
    assert "Sign out" in answer.text or path.startswith(STATIC)


def test_an_unknown_query_is_refused_without_showing_it(browser: httpx.Client) -> None:
    answer = browser.get("/dashboard", params={"canary": "<canary>"})
    assert (answer.status_code, code_of(answer)) == (422, "invalid_request")
    assert "canary" not in answer.text


def test_a_wrong_method_is_refused_with_the_allowed_ones(browser: httpx.Client) -> None:
    answer = browser.delete("/dashboard")
    assert (answer.status_code, code_of(answer)) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


def test_an_unexpected_error_is_a_page_without_its_message(
    application: FastAPI, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: no message of a library or of the database is shown."""

    def fail(*_: object) -> None:
        raise RuntimeError("canary")

    with open_browser(application, owner) as browser:
        monkeypatch.setattr("app.dashboard.pages.populations.list_accounts", fail)
        answer = browser.get("/dashboard")
    assert (answer.status_code, code_of(answer)) == (500, "internal")
    assert "canary" not in answer.text
    _check_headers(answer)


def test_a_database_that_does_not_answer_is_a_page_too(
    application: FastAPI, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("canary", None, ValueError())

    with open_browser(application, owner) as browser:
        monkeypatch.setattr(Database, "read", fail)
        answer = browser.get("/dashboard")
    assert (answer.status_code, code_of(answer)) == (503, "dependency_unavailable")
    assert f"Try again in {int(answer.headers['retry-after'])} seconds." in answer.text


def test_a_wrong_host_is_refused_on_pages_too(services: Services) -> None:
    application = create_app(services, hosts=AllowedHosts.of(["corevault.test"]))
    with open_browser(application) as browser:
        assert browser.get("/dashboard/sign-in").status_code == 200
        answer = browser.get("/dashboard/sign-in", headers={"Host": "elsewhere.test"})
        assert (answer.status_code, code_of(answer)) == (422, "invalid_request")


def test_head_requests_have_the_status_and_no_body(browser: httpx.Client) -> None:
    for path, status in (("/dashboard", 200), ("/dashboard/nowhere", 404)):
        answer = browser.head(path)
        assert (answer.status_code, answer.content) == (status, b"")


def test_the_stylesheet_may_be_cached_and_needs_no_session(services: Services) -> None:
    with open_browser(create_app(replace(services))) as browser:
        page = browser.get("/dashboard/sign-in").text
        address = page.partition('<link rel="stylesheet" href="')[2].partition('"')[0]
        answer = browser.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert not [word for word in ("http:", "https:", "@import", "//") if word in answer.text]
