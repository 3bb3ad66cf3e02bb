"""Every stable code comes back as its class, with all that the problem details say."""

from typing import Any

import corevault
import httpx
import pytest
from corevault import Cost
from corevault.errors import BY_CODE, ApiError

from app.datasets.ingestion import Rejection
from tests.client.fake import Script, problem

CODES = {
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "idempotency_conflict": 409,
    "state_conflict": 409,
    "offset_mismatch": 409,
    "budget_exceeded": 409,
    "precondition_failed": 412,
    "content_too_large": 413,
    "unsupported_media_type": 415,
    "range_not_satisfiable": 416,
    "invalid_request": 422,
    "method_not_allowed_on_private_data": 422,
    "digest_mismatch": 422,
    "internal": 500,
    "idempotency_in_progress": 409,
    "rate_limited": 429,
    "dependency_unavailable": 503,
}


def test_every_code_of_the_contract_has_one_class_of_its_own() -> None:
    assert set(BY_CODE) == set(CODES)
    assert len(set(BY_CODE.values())) == len(CODES)
    assert all(issubclass(kind, corevault.CorevaultError) for kind in BY_CODE.values())
    assert all(getattr(corevault, kind.__name__) is kind for kind in BY_CODE.values())


@pytest.mark.parametrize(("code", "status"), CODES.items())
def test_a_problem_is_rebuilt_as_its_class(code: str, status: int) -> None:
    faults = [{"pointer": "/size", "message": "Must be at least 1."}]
    script = Script([problem(status, code, request_id="req_9", errors=faults)])
    with script.client(max_retries=0) as client, pytest.raises(BY_CODE[code]) as caught:
        client.me()
    error = caught.value
    assert type(error) is BY_CODE[code]
    assert (error.code, error.status, error.request_id) == (code, status, "req_9")
    assert error.detail == f"A sentence about {code}."
    assert error.errors == tuple(faults)
    assert "/size: Must be at least 1." in str(error)


def test_budget_exceeded_has_the_figures() -> None:
    script = Script([problem(409, "budget_exceeded", requested=0.5, epsilon_after=2.2, limit=2.0, remaining=0.25)])
    model = corevault.LogisticRegression(features=["age"], target="seen")
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.jobs.submit("ds_1", model, size=10, epsilon=0.5)
    error = caught.value
    assert (error.requested, error.epsilon_after, error.limit, error.remaining) == (0.5, 2.2, 2.0, 0.25)
    assert len(script.seen) == 1


def test_figures_of_two_parts_are_costs_as_in_a_budget() -> None:
    sizes = {"requested": 0.5, "limit": 2, "remaining": 0.25}
    pairs: dict[str, Any] = {name: {"epsilon": size, "delta": 1e-6} for name, size in sizes.items()}
    script = Script([problem(409, "budget_exceeded", epsilon_after=2.2, **pairs)])
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.me()
    error = caught.value
    assert (error.requested, error.limit) == (Cost(epsilon=0.5, delta=1e-6), Cost(epsilon=2.0, delta=1e-6))
    assert error.remaining.epsilon == 0.25
    assert "remaining: {'epsilon': 0.25, 'delta': 1e-06}" in str(error)


def test_a_code_from_the_future_stays_an_api_error() -> None:
    with Script([problem(418, "teapot")]).client() as client, pytest.raises(ApiError) as caught:
        client.me()
    assert type(caught.value) is ApiError
    assert caught.value.code == "teapot"


def test_an_answer_without_problem_details_keeps_its_status() -> None:
    page = httpx.Response(502, text="<html>bad gateway</html>")
    with Script([page]).client() as client, pytest.raises(ApiError) as caught:
        client.me()
    assert (caught.value.status, caught.value.code, caught.value.request_id) == (502, "unknown", "")


def test_the_request_id_of_the_header_serves_where_the_body_has_none() -> None:
    with Script([problem(404, "not_found")]).client() as client, pytest.raises(corevault.NotFound) as caught:
        client.me()
    assert caught.value.request_id == "req_1"


def test_budget_exceeded_shows_its_figures_to_who_sees_the_traceback_only() -> None:
    script = Script([problem(409, "budget_exceeded", requested=0.5, epsilon_after=2.2, limit=2.0, remaining=0.25)])
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.me()
    assert str(caught.value).splitlines()[1:] == [
        "  requested: 0.5",
        "  epsilon_after: 2.2",
        "  limit: 2.0",
        "  remaining: 0.25",
    ]


@pytest.mark.parametrize("reason", list(Rejection))
def test_every_rejection_says_what_to_do(reason: Rejection) -> None:
    """The server's list of reasons is closed; the client explains each of them, and passes on what it does not know."""
    explained = corevault.ContentRejected(str(reason))
    assert explained.reason == reason
    assert str(explained).startswith(f"The uploaded content was rejected: {reason} (")
    assert str(corevault.ContentRejected("new_reason")) == "The uploaded content was rejected: new_reason."
