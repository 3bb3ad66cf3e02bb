"""Expected accuracy in quotes: from public facts alone, opt-in, counted, and made once."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import MemoryWindows, Rate
from app.http.rate_limits.rates import RateLimits
from app.inference import expected_accuracy
from app.jobs import estimates, quotes
from app.jobs.estimates import NOT_ESTIMATED, NOT_FINITE, Estimates
from app.main import create_app
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body
from tests.jobs.support import budget

NAMES = {"age", "hours", "sex=Male", "intercept"}


def body(dataset_id: str, epsilon: Any = 1.0, **changes: Any) -> dict[str, Any]:
    asked = {"method": "dp-psvi-surrogate", "parameters": {}, "privacy": {"epsilon": epsilon}}
    return job_body(dataset_id, **asked | changes) | {"expected_accuracy": True}


@pytest.fixture(autouse=True)
def fresh_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotes, "_ESTIMATES", Estimates())


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count estimates, which are made in no time."""
    made: list[int] = []

    def estimate(*_: object) -> expected_accuracy.ExpectedAccuracy:
        made.append(1)
        return expected_accuracy.ExpectedAccuracy({"age": 0.75}, {"age": 1.25})

    monkeypatch.setattr(expected_accuracy, "estimate", estimate)
    return made


@pytest.mark.slow
def test_quote_estimates_the_accuracy_without_a_row(
    house: House, api: httpx.Client, analyst: rows.Key, dataset_id: str
) -> None:
    """W3: the dataset has no table at all. The answer follows from the declaration and the request."""
    before = budget(house, dataset_id)
    answer = api.post("/v1/quotes", json=body(dataset_id), headers=analyst.headers)
    assert answer.status_code == 200, answer.text
    accuracy = answer.json()["expected_accuracy"]
    members = {"interval_widening", "interval_widening_range", "noise_in_posterior_sds", "assumes"}
    assert set(accuracy) == members
    assert set(accuracy["interval_widening"]) == set(accuracy["noise_in_posterior_sds"]) == NAMES
    for name, noise in accuracy["noise_in_posterior_sds"].items():
        assert noise > 0
        assert accuracy["interval_widening"][name] == pytest.approx((1 + noise**2) ** 0.5, rel=0.01)
        factors = expected_accuracy.LEAST, expected_accuracy.MOST
        stated = [(1 + (each * noise) ** 2) ** 0.5 for each in factors]
        assert accuracy["interval_widening_range"][name] == pytest.approx(stated, rel=0.01)
    assert "Every slot holds a row" in accuracy["assumes"]
    assert budget(house, dataset_id) == before
    assert house.queue.sent == []


def test_accuracy_is_not_estimated_unless_asked_for(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, calls: list[int]
) -> None:
    plain = {name: value for name, value in body(dataset_id).items() if name != "expected_accuracy"}
    for asked in (plain, plain | {"expected_accuracy": False}):
        assert api.post("/v1/quotes", json=asked, headers=analyst.headers).json()["expected_accuracy"] is None
    assert calls == []
    refusal = problem(api.post("/v1/jobs", json=body(dataset_id), headers=analyst.headers), 422, "invalid_request")
    assert [fault["pointer"] for fault in refusal["errors"]] == [""]


def test_other_methods_and_large_models_state_why_not(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset_id: str, calls: list[int]
) -> None:
    columns = [
        {"name": "place", "type": "categorical", "categories": [f"p{number}" for number in range(40)]},
        {"name": "income_gt_50k", "type": "binary"},
    ]
    model = {"family": "logistic-regression", "features": ["place"], "target": "income_gt_50k"}
    wide = body(house.ready_dataset(owner, columns=columns), model=model)
    other = job_body(dataset_id) | {"expected_accuracy": True}
    for asked in (wide, other):
        quote = api.post("/v1/quotes", json=asked, headers=owner.headers).json()
        assert quote["expected_accuracy"] is None
        assert NOT_ESTIMATED in quote["warnings"]
    assert calls == []


def test_estimate_is_made_once_for_each_plan(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, calls: list[int]
) -> None:
    first, again = (api.post("/v1/quotes", json=body(dataset_id), headers=analyst.headers).json() for _ in range(2))
    assert first == again
    assert first["expected_accuracy"]["interval_widening"] == {"age": 1.25}
    api.post("/v1/quotes", json=body(dataset_id, size=9), headers=analyst.headers)
    assert len(calls) == 1, "the number of points makes no difference"
    listed = api.post("/v1/quotes", json=body(dataset_id, [0.5, 1.0]), headers=analyst.headers).json()
    assert [each["expected_accuracy"]["interval_widening"] for each in listed["quotes"]] == [{"age": 1.25}] * 2
    assert len(calls) == 2
    keyed = api.post("/v1/quotes", json=body(dataset_id, 1.5), headers=analyst.headers | {"Idempotency-Key": "k"})
    assert keyed.json()["expected_accuracy"] is not None
    assert len(calls) == 3


def test_more_targets_than_estimates_are_refused(api: httpx.Client, analyst: rows.Key, dataset_id: str) -> None:
    answer = api.post("/v1/quotes", json=body(dataset_id, [0.1] * 5), headers=analyst.headers)
    assert "at most 4 targets" in problem(answer, 422, "invalid_request")["errors"][0]["message"]


class SlowEstimates:
    """Estimates that wait; each of them ends on a signal."""

    def __init__(self) -> None:
        self.started, self.ends = threading.Semaphore(0), threading.Semaphore(0)

    def estimate(self, *_: object) -> expected_accuracy.ExpectedAccuracy:
        self.started.release()
        assert self.ends.acquire(timeout=30)
        return expected_accuracy.ExpectedAccuracy({"age": 0.75}, {"age": 1.25})


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowEstimates:
    estimates = SlowEstimates()
    monkeypatch.setattr(expected_accuracy, "estimate", estimates.estimate)
    return estimates


def test_further_estimate_of_a_caller_meanwhile_is_refused(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, slow: SlowEstimates
) -> None:
    ask = threading.Thread(target=lambda: api.post("/v1/quotes", json=body(dataset_id), headers=analyst.headers))
    ask.start()
    assert slow.started.acquire(timeout=30)
    refused = api.post("/v1/quotes", json=body(dataset_id, 0.5), headers=analyst.headers)
    slow.ends.release(2)
    ask.join()
    problem(refused, 429, "rate_limited")
    assert refused.headers["retry-after"] == "2"
    assert api.post("/v1/quotes", json=body(dataset_id, 0.5), headers=analyst.headers).status_code == 200


def test_estimates_of_several_callers_take_turns(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset_id: str, slow: SlowEstimates
) -> None:
    """The second caller is next, although the first asks again before it."""
    answers = list[tuple[str, float, int]]()

    def ask(key: rows.Key, epsilon: float) -> threading.Thread:
        def send() -> None:
            answer = api.post("/v1/quotes", json=body(dataset_id, epsilon), headers=key.headers)
            answers.append((key.id, epsilon, answer.status_code))

        thread = threading.Thread(target=send)
        thread.start()
        return thread

    first = ask(analyst, 1.0)
    assert slow.started.acquire(timeout=30)
    second = ask(owner, 0.5)
    ask(analyst, 0.7).join()
    assert not slow.started.acquire(timeout=0.2), "one estimate at a time"
    slow.ends.release()
    assert slow.started.acquire(timeout=30)
    slow.ends.release()
    first.join()
    second.join()
    assert sorted(answers) == sorted([(analyst.id, 0.7, 429), (analyst.id, 1.0, 200), (owner.id, 0.5, 200)])


def test_waiting_for_an_estimate_has_an_end(
    api: httpx.Client,
    owner: rows.Key,
    analyst: rows.Key,
    dataset_id: str,
    slow: SlowEstimates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(estimates, "WAIT_SECONDS", 0.05)
    ask = threading.Thread(target=lambda: api.post("/v1/quotes", json=body(dataset_id), headers=analyst.headers))
    ask.start()
    assert slow.started.acquire(timeout=30)
    refused = [api.post("/v1/quotes", json=body(dataset_id, 0.5), headers=owner.headers)]
    monkeypatch.setattr(estimates, "MOST_WAITING", 0)
    monkeypatch.setattr(estimates, "WAIT_SECONDS", 60.0)
    refused.append(api.post("/v1/quotes", json=body(dataset_id, 0.5), headers=owner.headers))
    slow.ends.release(2)
    ask.join()
    for each in refused:
        problem(each, 429, "rate_limited")
    assert api.post("/v1/quotes", json=body(dataset_id, 0.5), headers=owner.headers).status_code == 200


@pytest.mark.parametrize("error", [ArithmeticError, ValueError])
def test_failed_estimate_is_a_warning_and_frees_the_turn(
    api: httpx.Client, analyst: rows.Key, dataset_id: str, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error("canary-7461")

    monkeypatch.setattr(expected_accuracy, "estimate", fail)
    for epsilon in (1.0, 0.5):
        answer = api.post("/v1/quotes", json=body(dataset_id, epsilon), headers=analyst.headers)
        assert (answer.status_code, answer.json()["expected_accuracy"]) == (200, None)
        assert NOT_FINITE in answer.json()["warnings"]
        assert "canary" not in answer.text


@pytest.fixture
def limited(house: House) -> Iterator[httpx.Client]:
    rates = RateLimits(MemoryWindows(), Rate(50, 60), Rate(10, 60), TrustedProxies.of([]))
    services = replace(house.services, rates=rates)
    with httpx.Client(transport=AppTransport(create_app(services)), base_url="http://corevault.test") as client:
        yield client


def test_estimate_counts_as_20_requests(
    limited: httpx.Client, analyst: rows.Key, dataset_id: str, calls: list[int]
) -> None:
    def send() -> httpx.Response:
        return limited.post("/v1/quotes", json=body(dataset_id), headers=analyst.headers)

    assert [send().headers["RateLimit"].partition(";t=")[0] for _ in range(2)] == ['"key";r=30', '"key";r=10']
    problem(send(), 429, "rate_limited")
