"""Errors are problem details with a listed code and a request id."""

import logging
import traceback

import httpx
import pytest
from fastapi import FastAPI

from app.errors import CorevaultError
from app.http.errors.codes import PROBLEMS
from app.http.errors.openapi import make_example
from app.http.middleware.outer_middleware import ResponseAborted
from tests.factories import rows
from tests.factories.transport import AppTransport
from tests.http.conftest import CANARY

MEMBERS = {"type", "title", "status", "detail", "code", "request_id"}


def _classes(root: type[CorevaultError]) -> list[type[CorevaultError]]:
    return [*(found for child in root.__subclasses__() for found in _classes(child)), root]


def test_every_domain_error_has_a_status() -> None:
    assert {each.code for each in _classes(CorevaultError)} <= set(PROBLEMS)


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_every_code_has_an_example(code: str) -> None:
    assert set(make_example(code)) >= MEMBERS


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/me/", 404, "not_found"),
        ("GET", "/v1/%00", 404, "not_found"),
        ("POST", "/docs", 405, "method_not_allowed"),
        ("PUT", "/v1/me", 405, "method_not_allowed"),
        ("BREW", "/v1/me", 405, "method_not_allowed"),
        ("GET", "/v1/me", 401, "unauthenticated"),
        ("GET", "/v1/drawings/broken", 500, "internal"),
        ("GET", "/v1/drawings/away", 503, "dependency_unavailable"),
        ("GET", "/v1/drawings/poor", 409, "budget_exceeded"),
    ],
)
def test_errors_are_problem_details(drawings: httpx.Client, method: str, path: str, status: int, code: str) -> None:
    answer = drawings.request(method, path)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert set(body) >= MEMBERS
    assert (body["status"], body["code"]) == (status, code)
    assert body["request_id"] == answer.headers["X-Request-Id"]


def test_the_members_of_an_error_are_part_of_its_problem(drawings: httpx.Client) -> None:
    body = drawings.get("/v1/drawings/poor").json()
    assert (body["requested"], body["epsilon_after"]) == ({"epsilon": 0.5}, 2.1)


def test_405_names_every_method_of_the_address(drawings: httpx.Client) -> None:
    answer = drawings.put("/v1/drawings/broken")
    assert answer.headers["Allow"] == "DELETE, GET, HEAD, OPTIONS"


def test_an_unexpected_error_does_not_reveal_its_cause(
    drawings: httpx.Client, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """W3: neither the response nor the log contains an exception's message."""
    with caplog.at_level(logging.DEBUG):
        answer = drawings.get("/v1/drawings/broken")
    captured = capfd.readouterr()
    assert "ZeroDivisionError" in captured.out + captured.err
    assert CANARY not in answer.text + captured.out + captured.err + caplog.text


def test_a_response_that_is_cut_off_does_not_reveal_its_cause(
    drawings: httpx.Client, application: FastAPI, capfd: pytest.CaptureFixture[str]
) -> None:
    """W3: the exception in the server's log has no cause."""
    assert drawings.get("/v1/drawings/half").content == b"first"
    raising = httpx.Client(transport=AppTransport(application, raises=True), base_url="http://corevault.test")
    with raising as client, pytest.raises(ResponseAborted) as raised:
        client.get("/v1/drawings/half")
    captured = capfd.readouterr()
    logged = "".join(traceback.format_exception(raised.value))
    assert CANARY not in captured.out + captured.err + logged


@pytest.mark.parametrize("path", ["/v1/me", "/health/live", "/v1/nothing", "/openapi.json"])
def test_every_response_has_a_different_request_id(drawings: httpx.Client, owner: rows.Key, path: str) -> None:
    ids = {drawings.get(path, headers=owner.headers).headers["X-Request-Id"] for _ in range(3)}
    assert len(ids) == 3
