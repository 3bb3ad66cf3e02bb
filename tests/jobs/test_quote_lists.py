"""Quotes of several targets at once, and sizes that a request leaves out."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import MemoryWindows, Rate
from app.http.rate_limits.rates import RateLimits
from app.inference import registry
from app.main import create_app
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.jobs.support import budget


def asked(dataset_id: str, *targets: object, **changes: Any) -> dict[str, Any]:
    return job_body(dataset_id, privacy={"epsilon": list(targets)}, **changes)


@pytest.fixture
def limited(house: House) -> Iterator[httpx.Client]:
    """Make a client of an API with a limit of 10 requests a minute."""
    rates = RateLimits(MemoryWindows(), Rate(10, 60), Rate(10, 60), TrustedProxies.of([]))
    services = replace(house.services, rates=rates)
    with httpx.Client(transport=AppTransport(create_app(services)), base_url="http://corevault.test") as client:
        yield client


def test_list_of_targets_gets_the_single_quotes_in_order(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    before = budget(house, dataset_id)
    targets = (1.0, 0.1, 5.0, 0.3, 0.1)
    answer = api.post("/v1/quotes", json=asked(dataset_id, *targets), headers=analyst.headers)
    assert answer.status_code == 200, answer.text
    single = [
        api.post("/v1/quotes", json=job_body(dataset_id, privacy={"epsilon": each}), headers=analyst.headers).json()
        for each in targets
    ]
    assert answer.json() == {"quotes": single}
    assert [each["affordable"] for each in single] == [True, True, False, True, True]
    assert budget(house, dataset_id) == before


def test_list_of_one_target_gets_a_list(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    answer = api.post("/v1/quotes", json=asked(dataset_id, 0.5), headers=analyst.headers).json()
    assert [each["affordable"] for each in answer["quotes"]] == [True]


def test_repeated_list_with_a_key_gets_the_first_answer(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    headers = analyst.headers | {"Idempotency-Key": "k"}
    first = api.post("/v1/quotes", json=asked(dataset_id, 0.5, 1.0), headers=headers)
    assert len(first.json()["quotes"]) == 2
    assert api.post("/v1/jobs", json=job_body(dataset_id), headers=analyst.headers).status_code == 202
    assert api.post("/v1/quotes", json=asked(dataset_id, 0.5, 1.0), headers=headers).json() == first.json()
    problem(api.post("/v1/quotes", json=asked(dataset_id, 0.5), headers=headers), 409, "idempotency_conflict")


@pytest.mark.parametrize(
    ("targets", "pointers"),
    [
        ([], ["/privacy/epsilon"]),
        ([0.1] * 21, ["/privacy/epsilon"]),
        ([0.5, 0.0], ["/privacy/epsilon/1"]),
        ([0.5, "1"], ["/privacy/epsilon/1"]),
        ([True], ["/privacy/epsilon/0"]),
        ([[0.5]], ["/privacy/epsilon/0"]),
        ([1e-9, 0.5, 20.5, 1e-9], ["/privacy/epsilon/0", "/privacy/epsilon/2", "/privacy/epsilon/3"]),
    ],
)
def test_wrong_target_of_a_list_is_pointed_at(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, targets: list[object], pointers: list[str]
) -> None:
    answer = api.post("/v1/quotes", json=asked(dataset_id, *targets), headers=analyst.headers)
    faults = problem(answer, 422, "invalid_request")["errors"]
    assert [fault["pointer"] for fault in faults] == pointers


def test_fault_of_all_targets_is_stated_once(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    body = asked(dataset_id, 0.5, 1.0, parameters={"posterior_draws": 0})
    faults = problem(api.post("/v1/quotes", json=body, headers=analyst.headers), 422, "invalid_request")["errors"]
    assert [fault["pointer"] for fault in faults] == ["/parameters/posterior_draws"]


def test_job_takes_one_target_only(house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    before = budget(house, dataset_id)
    refusal = problem(
        api.post("/v1/jobs", json=asked(dataset_id, 0.5), headers=analyst.headers), 422, "invalid_request"
    )
    assert [fault["pointer"] for fault in refusal["errors"]] == ["/privacy/epsilon"]
    assert budget(house, dataset_id) == before


def test_each_quote_of_a_list_counts_as_a_request(limited: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    def send(*targets: float) -> httpx.Response:
        return limited.post("/v1/quotes", json=asked(dataset_id, *targets), headers=analyst.headers)

    first = send(0.2, 0.3, 0.4, 0.5)
    assert (first.status_code, first.headers["RateLimit"].partition(";t=")[0]) == (200, '"key";r=6')
    refused = send(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    problem(refused, 429, "rate_limited")
    assert int(refused.headers["Retry-After"]) >= 1
    assert send(0.5).headers["RateLimit"].startswith('"key";r=4;'), "of a refused list, one request counts"


def test_list_longer_than_the_window_takes_all_of_it(limited: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    targets = [0.2 + 0.01 * step for step in range(20)]
    answer = limited.post("/v1/quotes", json=asked(dataset_id, *targets), headers=analyst.headers)
    assert (answer.status_code, len(answer.json()["quotes"])) == (200, 20)
    assert limited.get("/v1/me", headers=analyst.headers).status_code == 429


def test_job_without_a_size_gets_the_default_one(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    body = {name: value for name, value in job_body(dataset_id).items() if name != "size"}
    quote = api.post("/v1/quotes", json=body, headers=analyst.headers).json()
    assert quote["size"] == {"requested": 20, "smallest_exact": 5}
    job = api.post("/v1/jobs", json=body, headers=analyst.headers).json()
    assert (job["size"], house.read(job["id"]).plan["size"]) == (20, 20)
    stated = api.post("/v1/quotes", json=body | {"size": 20}, headers=analyst.headers).json()
    assert stated["size"] == {"requested": 20, "smallest_exact": 5}
    assert stated["cost"] == quote["cost"]


def test_default_size_represents_a_model_of_many_parameters(house: House, api: httpx.Client, owner: rows.Key) -> None:
    levels = [f"level {number}" for number in range(31)]
    columns = [
        {"name": "place", "type": "categorical", "categories": levels},
        {"name": "income_gt_50k", "type": "binary"},
    ]
    dataset_id = house.ready_dataset(owner, columns=columns)
    model = {"family": "logistic-regression", "features": ["place"], "target": "income_gt_50k"}
    body = {"dataset_id": dataset_id, "model": model, "privacy": {"epsilon": 1.0}}
    quote = api.post("/v1/quotes", json=body, headers=owner.headers).json()
    assert quote["size"]["requested"] == quote["size"]["smallest_exact"] > registry.USUAL_SIZE
    assert not [warning for warning in quote["warnings"] if "points" in warning]


def test_fault_of_a_model_without_a_size_is_pointed_at(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    model = {"family": "logistic-regression", "features": ["age", "nope"], "target": "income_gt_50k"}
    body = {name: value for name, value in job_body(dataset_id, model=model).items() if name != "size"}
    faults = problem(api.post("/v1/quotes", json=body, headers=analyst.headers), 422, "invalid_request")["errors"]
    assert [fault["pointer"] for fault in faults] == ["/model/features/1"]
