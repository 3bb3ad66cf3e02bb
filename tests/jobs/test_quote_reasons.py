"""Quotes state why a job is not affordable: by the limit, a cap, an allocation, or a freeze."""

from typing import Any

import httpx
import pytest

from app.ledger import Cause
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, job_body


def body(dataset_id: str, noise: float) -> dict[str, Any]:
    return job_body(dataset_id, privacy={"noise_multiplier": noise, "sampling_rate": 1.0, "iterations": 5})


def quote(api: httpx.Client, key: rows.Key, dataset_id: str, noise: float) -> tuple[bool, str | None, int]:
    answer = api.post("/v1/quotes", json=body(dataset_id, noise), headers=key.headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["affordable"], answer.json()["reason"], answer.json()["more_like_this"]


def allocate(api: httpx.Client, owner: rows.Key, dataset_id: str, key: rows.Key, epsilon: float) -> None:
    change = {"allocations": [{"key_id": key.id, "epsilon": epsilon}]}
    answer = api.patch(f"/v1/datasets/{dataset_id}", json=change, headers=owner.headers)
    assert answer.status_code == 200, answer.text


@pytest.fixture
def capped_id(house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key) -> str:
    """Return a dataset with the limit 0.5, in a population with the limit 2."""
    house.ready_dataset(owner, population="people")
    second = house.ready_dataset(owner, population="people", shared_with=(analyst.id,))
    change = {"epsilon": 0.5}
    answer = api.put(f"/v1/datasets/{second}/budget", json=change, headers=owner.headers)
    assert (answer.status_code, answer.json()["limit"]["epsilon"]) == (200, 0.5), answer.text
    return second


def test_affordable_quote_has_no_reason(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    affordable, reason, more = quote(api, analyst, dataset_id, 60.0)
    assert (affordable, reason) == (True, None)
    assert more > 0


def test_quote_beyond_the_limit_says_so(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    assert quote(api, analyst, dataset_id, 1.0) == (False, "limit", 0)
    refusal = problem(api.post("/v1/jobs", json=body(dataset_id, 1.0), headers=analyst.headers), 409, "budget_exceeded")
    assert refusal["reason"] == "limit"


def test_quote_beyond_the_cap_of_its_dataset_says_so(
    api: httpx.Client, owner: rows.Key, analyst: rows.Key, capped_id: str
) -> None:
    assert quote(api, analyst, capped_id, 60.0)[:2] == (True, None)
    assert quote(api, analyst, capped_id, 10.0) == (False, "cap", 0)
    refusal = problem(api.post("/v1/jobs", json=body(capped_id, 10.0), headers=analyst.headers), 409, "budget_exceeded")
    assert (refusal["reason"], refusal["limit"]["epsilon"]) == ("cap", 0.5)
    assert quote(api, analyst, capped_id, 1.0) == (False, "limit", 0), "the population's limit comes first"


def test_quote_beyond_the_callers_allocation_says_so(
    api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset_id: str
) -> None:
    allocate(api, owner, dataset_id, analyst, 0.5)
    assert quote(api, analyst, dataset_id, 10.0) == (False, "allocation", 0)
    assert quote(api, owner, dataset_id, 10.0)[:2] == (True, None)
    refusal = problem(
        api.post("/v1/jobs", json=body(dataset_id, 10.0), headers=analyst.headers), 409, "budget_exceeded"
    )
    assert (refusal["reason"], refusal["limit"]["epsilon"]) == ("allocation", 0.5)


def test_quote_on_a_frozen_account_says_so(house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    with house.database.write() as tx:
        house.ledger.freeze(tx, dataset_id, Cause.RUN)
    assert quote(api, analyst, dataset_id, 60.0) == (False, "frozen", 0)
    assert quote(api, analyst, dataset_id, 1.0) == (False, "frozen", 0)


def test_quote_on_public_data_has_no_reason(house: House, api: httpx.Client, owner: rows.Key) -> None:
    public = house.ready_dataset(owner, sensitivity="public")
    answer = api.post(
        "/v1/quotes", json=job_body(public, method="uniform", privacy=None, parameters={}), headers=owner.headers
    )
    assert (answer.json()["affordable"], answer.json()["reason"]) == (True, None), answer.text
