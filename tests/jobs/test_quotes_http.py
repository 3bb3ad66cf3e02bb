"""Quotes over HTTP: the price of a mechanism or a target, the remaining budget, and warnings."""

from typing import Any

import httpx
import pytest

from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent, SelfComposedEvent
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import DELTA, House, job_body
from tests.jobs.support import MECHANISM, budget


def test_quote_prices_the_mechanism_and_changes_nothing(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    before = budget(house, dataset_id)
    response = api.post("/v1/quotes", json=job_body(dataset_id), headers=analyst.headers)
    assert response.status_code == 200, response.text
    quote = response.json()
    expected = compute_cost((SelfComposedEvent(GaussianEvent(30.0), 5),), DELTA)
    assert quote["cost"] == {"epsilon": pytest.approx(expected, rel=1e-12), "delta": DELTA}
    assert quote["epsilon_after"] == quote["cost"]["epsilon"]
    assert quote["mechanism"] == MECHANISM
    assert quote["affordable"] is True
    assert quote["more_like_this"] >= 1
    assert quote["size"] == {"requested": 6, "smallest_exact": 5}
    assert quote["warnings"] == []
    assert budget(house, dataset_id) == before
    assert house.queue.sent == []


def test_repeated_quote_with_a_key_is_bound_to_its_body(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    before = budget(house, dataset_id)
    headers, body = analyst.headers | {"Idempotency-Key": "k"}, job_body(dataset_id)
    first = api.post("/v1/quotes", json=body, headers=headers)
    assert first.json() == api.post("/v1/quotes", json=body, headers=analyst.headers).json()
    assert api.post("/v1/quotes", json=body, headers=headers).json() == first.json()
    problem(api.post("/v1/quotes", json=body | {"size": 7}, headers=headers), 409, "idempotency_conflict")
    problem(
        api.post("/v1/quotes", json=body, headers=analyst.headers | {"Idempotency-Key": "a b"}), 422, "invalid_request"
    )
    assert api.post("/v1/jobs", json=body, headers=headers).status_code == 202
    assert budget(house, dataset_id) != before


def test_cost_of_a_target_is_at_most_and_nearly_the_target(
    api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    for epsilon in (0.1, 0.5, 1.5):
        quote = api.post(
            "/v1/quotes", json=job_body(dataset_id, privacy={"epsilon": epsilon}), headers=analyst.headers
        ).json()
        assert epsilon * (1 - 1e-4) <= quote["cost"]["epsilon"] <= epsilon


@pytest.mark.parametrize("method", ["dp-psvi", "dp-psvi-surrogate", "dp-vi"])
def test_unreachable_target_is_refused_with_the_smallest_possible_one(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, method: str
) -> None:
    """W3: the suggested target depends only on declared facts and the request."""

    def quote(epsilon: float) -> httpx.Response:
        body = job_body(dataset_id, method=method, privacy={"epsilon": epsilon}, parameters={})
        return api.post("/v1/quotes", json=body, headers=analyst.headers)

    fault = problem(quote(1e-6), 422, "invalid_request")["errors"][0]
    assert fault["pointer"] == "/privacy/epsilon"
    least = float(fault["message"].split("at least ")[1].split(":")[0])
    assert quote(least).status_code == 200
    assert quote(least * 0.9).status_code == 422


def test_job_for_the_whole_limit_is_admitted_on_a_new_account(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    """The filter would refuse the exact target, so the job gets slightly more noise."""
    body = job_body(dataset_id, privacy={"epsilon": 2.0})
    quote = api.post("/v1/quotes", json=body, headers=analyst.headers).json()
    assert quote["affordable"] is True
    assert 2.0 * 0.9 < quote["cost"]["epsilon"] <= 2.0
    url = f"/v1/datasets/{dataset_id}/what-if/job"
    preview = api.post(url, json={"epsilon": 2.0}, headers=analyst.headers).json()
    assert (preview["affordable"], preview["cost"]["epsilon"] <= 2.0) == (True, True)
    response = api.post("/v1/jobs", json=body, headers=analyst.headers)
    assert (response.status_code, response.json()["cost"]) == (202, quote["cost"])
    again = api.post("/v1/quotes", json=job_body(dataset_id), headers=analyst.headers).json()
    assert (again["affordable"], again["more_like_this"]) == (False, 0)


def test_quote_for_the_remaining_budget_is_affordable(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset_id: str
) -> None:
    """W15: at a limit of 2, raised to 20, lowered to 2 again, and within an allocation."""

    def remaining() -> float:
        url = f"/v1/datasets/{dataset_id}/budget"
        left = float(api.get(url, headers=analyst.headers).json()["remaining"]["epsilon"])
        body = job_body(dataset_id, method="dp-psvi-surrogate", parameters={}, privacy={"epsilon": left})
        quote = api.post("/v1/quotes", json=body, headers=analyst.headers).json()
        assert quote["affordable"] is True
        return left

    first = remaining()
    for limit in ({"epsilon": 20.0, "delta": DELTA}, {"epsilon": 2.0}):
        answer = api.put(f"/v1/datasets/{dataset_id}/budget", json=limit, headers=owner.headers)
        assert answer.status_code == 200, answer.text
        assert remaining() > 0.9 * first
    allocations = {"allocations": [{"key_id": analyst.id, "epsilon": 0.5}]}
    answer = api.patch(f"/v1/datasets/{dataset_id}", json=allocations, headers=owner.headers)
    assert answer.status_code == 200, answer.text
    assert 0.3 < remaining() <= 0.5


def test_request_without_a_method_gets_the_default_method(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    body = {name: value for name, value in job_body(dataset_id, parameters={}).items() if name != "method"}
    quote = api.post("/v1/quotes", json=body | {"privacy": {"epsilon": 0.5}}, headers=analyst.headers).json()
    assert 0.5 * (1 - 1e-4) <= quote["cost"]["epsilon"] <= 0.5
    job = api.post("/v1/jobs", json=body | {"privacy": {"epsilon": 0.5}}, headers=analyst.headers).json()
    assert (job["method"], job["cost"]) == ("dp-psvi-surrogate", quote["cost"])
    assert job["mechanism"] == quote["mechanism"]
    assert quote["mechanism"]["iterations"] == 5 + 2 * job["parameters"]["rounds"]


@pytest.mark.parametrize("openings", [4, 5])
def test_mechanism_of_several_noises_costs_its_one_shot_equivalent(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, openings: int
) -> None:
    mechanism = {"noise_multiplier": 9.0, "sampling_rate": 1.0, "iterations": openings + 2 * 8}
    body = job_body(dataset_id, method="dp-psvi-surrogate", privacy=mechanism, parameters={})
    quote = api.post("/v1/quotes", json=body, headers=analyst.headers).json()
    assert quote["mechanism"] == mechanism
    assert quote["cost"]["epsilon"] == pytest.approx(compute_cost((GaussianEvent(9.0),), DELTA), rel=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "parameters", "pointer"),
    [
        ({"iterations": 6}, {}, "/privacy/iterations"),
        ({"iterations": 5}, {}, "/privacy/iterations"),
        ({"iterations": 10**6 + 1}, {}, "/privacy/iterations"),
        ({"noise_multiplier": 0.01}, {}, "/privacy/noise_multiplier"),
        ({}, {"rounds": 8}, "/parameters/rounds"),
        ({}, {"sampling_rate": 0.5}, "/parameters/sampling_rate"),
        ({}, {"posterior_draws": 10}, "/parameters"),
    ],
)
def test_invalid_mechanism_of_the_default_method_is_pointed_at(
    api: httpx.Client,
    analyst: rows.Key,
    dataset_id: str,
    mechanism: dict[str, Any],
    parameters: dict[str, Any],
    pointer: str,
) -> None:
    privacy = {"noise_multiplier": 9.0, "sampling_rate": 1.0, "iterations": 19} | mechanism
    body = job_body(dataset_id, method="dp-psvi-surrogate", privacy=privacy, parameters=parameters)
    fault = problem(api.post("/v1/quotes", json=body, headers=analyst.headers), 422, "invalid_request")
    assert [error["pointer"] for error in fault["errors"]] == [pointer]


def test_quote_warns_of_too_few_points_and_of_too_much_noise(
    api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    body = job_body(dataset_id, method="dp-psvi-surrogate", size=4, privacy={"epsilon": 0.01}, parameters={})
    rank, noise = api.post("/v1/quotes", json=body, headers=analyst.headers).json()["warnings"]
    assert "fewer than 5 points" in rank
    assert "this much noise" in noise


def test_quote_warns_of_a_size_below_the_rank(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    quote = api.post("/v1/quotes", json=job_body(dataset_id, size=4), headers=analyst.headers).json()
    assert quote["size"] == {"requested": 4, "smallest_exact": 5}
    assert len(quote["warnings"]) == 1
