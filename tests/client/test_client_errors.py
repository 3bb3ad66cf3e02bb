"""Every stable code becomes its class, with the members of the problem details."""

from typing import Any, get_args

import corevault
import httpx
import pytest
from corevault import Cost, Job, JobFailed
from corevault.cli.failures import describe_error
from corevault.errors import BY_CODE, ApiError

from app.datasets.ingestion import Rejection
from app.errors import LackingBudget
from app.jobs.lifecycle import JobError
from tests.client.fake import Script, job, problem

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
    "privacy_alarm": 409,
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


def test_every_code_of_the_contract_has_one_class() -> None:
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


def test_figures_with_epsilon_and_delta_are_costs() -> None:
    sizes = {"requested": 0.5, "limit": 2, "remaining": 0.25}
    pairs: dict[str, Any] = {name: {"epsilon": size, "delta": 1e-6} for name, size in sizes.items()}
    script = Script([problem(409, "budget_exceeded", epsilon_after=2.2, **pairs)])
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.me()
    error = caught.value
    assert (error.requested, error.limit) == (Cost(epsilon=0.5, delta=1e-6), Cost(epsilon=2.0, delta=1e-6))
    assert error.remaining.epsilon == 0.25
    assert "remaining: {'epsilon': 0.25, 'delta': 1e-06}" in str(error)


def test_an_unknown_code_is_an_api_error() -> None:
    with Script([problem(418, "teapot")]).client() as client, pytest.raises(ApiError) as caught:
        client.me()
    assert type(caught.value) is ApiError
    assert caught.value.code == "teapot"


def test_an_answer_without_problem_details_keeps_its_status() -> None:
    page = httpx.Response(502, text="<html>bad gateway</html>")
    with Script([page]).client() as client, pytest.raises(ApiError) as caught:
        client.me()
    assert (caught.value.status, caught.value.code, caught.value.request_id) == (502, "unknown", "")


def test_the_request_id_may_come_from_the_header() -> None:
    with Script([problem(404, "not_found")]).client() as client, pytest.raises(corevault.NotFound) as caught:
        client.me()
    assert caught.value.request_id == "req_1"


def test_the_text_of_budget_exceeded_has_the_figures() -> None:
    script = Script([problem(409, "budget_exceeded", requested=0.5, epsilon_after=2.2, limit=2.0, remaining=0.25)])
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.me()
    assert str(caught.value).splitlines()[1:] == [
        "  requested: 0.5",
        "  epsilon_after: 2.2",
        "  limit: 2.0",
        "  remaining: 0.25",
    ]


@pytest.mark.parametrize("reason", get_args(LackingBudget))
def test_budget_exceeded_says_which_budget_has_no_room(reason: str) -> None:
    script = Script([problem(409, "budget_exceeded", reason=reason)])
    with script.client() as client, pytest.raises(corevault.BudgetExceeded) as caught:
        client.me()
    assert caught.value.reason == reason
    assert "has no room for this job." in str(caught.value)
    assert describe_error(caught.value).count("has no room for this job.") == 1


@pytest.mark.parametrize("members", [{}, {"reason": "later"}, {"reason": ["limit"]}])
def test_budget_exceeded_without_a_known_reason_adds_no_words(members: dict[str, Any]) -> None:
    error = corevault.BudgetExceeded({"detail": "No.", **members}, status=409)
    assert error.detail == "No."


@pytest.mark.parametrize("reason", list(Rejection))
def test_every_rejection_has_a_remedy(reason: Rejection) -> None:
    """The client explains each reason of the server's closed list. Unknown reasons have no explanation."""
    explained = corevault.ContentRejected(str(reason))
    assert explained.reason == reason
    assert str(explained).startswith(f"The uploaded content was rejected: {reason} (")
    assert str(corevault.ContentRejected("new_reason")) == "The uploaded content was rejected: new_reason."


def test_the_remedy_of_a_duplicate_names_the_population() -> None:
    text = str(corevault.ContentRejected("duplicate_content"))
    assert "that of a deleted dataset" in text
    assert "whose name is the id of its first dataset unless you chose one" in text


@pytest.mark.parametrize("code", list(JobError))
def test_every_failure_of_a_job_has_a_remedy(code: JobError) -> None:
    failed = JobFailed(Job.from_json(job("failed", error={"code": str(code)})))
    assert str(failed).startswith(f"Job job_1 failed ({code}: the ")


@pytest.mark.parametrize(("epsilon", "words"), [(0.5, "ε=0.5, δ=1e-06"), (0.0, "nothing")])
def test_the_charge_of_a_cancelled_job_is_stated(epsilon: float, words: str) -> None:
    settlement = {"charged": {"epsilon": epsilon, "delta": 1e-6 if epsilon else 0.0}, "reason": "A sentence."}
    failed = JobFailed(Job.from_json(job("cancelled", settlement=settlement)))
    assert str(failed) == f"Job job_1 cancelled. It charged {words}."
    assert failed.job.settlement is not None
    assert failed.job.settlement.charged.epsilon == epsilon


def test_a_job_failure_without_a_remedy_has_its_code() -> None:
    assert str(JobFailed(Job.from_json(job("failed", error={"code": "new_code"})))) == "Job job_1 failed (new_code)."
    assert str(JobFailed(Job.from_json(job("cancelled")))) == "Job job_1 cancelled."
