"""Retries: which requests are retried, how often, and after which delay."""

from collections.abc import Callable

import httpx
import pytest
from corevault import (
    Client,
    ConnectionFailed,
    DependencyUnavailable,
    Forbidden,
    IdempotencyInProgress,
    Internal,
    LogisticRegression,
    RateLimited,
)

from tests.client.fake import DATASET, Script, job, ok, problem

ME = {"id": "key_1", "name": "ana", "role": "analyst"}
MODEL = LogisticRegression(features=["age"], target="seen")


def test_a_get_without_answer_is_retried_with_growing_delays(naps: list[float]) -> None:
    script = Script([httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), ok(ME)])
    with script.client() as client:
        assert client.me().id == "key_1"
    assert 0.25 <= naps[0] <= 0.5
    assert 0.5 <= naps[1] <= 1.0


def test_retries_are_bounded(naps: list[float]) -> None:
    script = Script([httpx.ConnectError("refused")])
    with script.client(max_retries=3) as client, pytest.raises(ConnectionFailed) as caught:
        client.me()
    assert len(script.seen) == 4
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert "http://vault.test" in str(caught.value)


@pytest.mark.parametrize(("status", "code"), [(429, "rate_limited"), (503, "dependency_unavailable")])
def test_retry_after_is_obeyed(naps: list[float], status: int, code: str) -> None:
    script = Script([problem(status, code, retry_after="7"), ok(ME)])
    with script.client() as client:
        client.me()
    assert naps == [7.0]


def test_a_long_retry_after_is_left_to_the_caller(naps: list[float]) -> None:
    script = Script([problem(429, "rate_limited", retry_after="3600")])
    with script.client() as client, pytest.raises(RateLimited) as caught:
        client.me()
    assert (naps, caught.value.retry_after) == ([], 3600.0)


def test_a_503_without_problem_details_is_retried(naps: list[float]) -> None:
    with Script([httpx.Response(503, text="down"), ok(ME)]).client() as client:
        client.me()
    assert len(naps) == 1


def test_other_errors_are_not_retried(naps: list[float]) -> None:
    script = Script([problem(500, "internal")])
    with script.client() as client, pytest.raises(Internal):
        client.me()
    assert (len(script.seen), naps) == (1, [])


def test_a_post_is_retried_with_the_same_idempotency_key(naps: list[float]) -> None:
    script = Script([httpx.ReadError("lost"), problem(409, "idempotency_in_progress"), ok(job("queued"), 202)])
    with script.client() as client:
        client.jobs.submit("ds_1", MODEL, size=10, epsilon=0.5)
    keys = {request.headers["Idempotency-Key"] for request in script.seen}
    assert (len(script.seen), len(keys), len(set(script.bodies))) == (3, 1, 1)


def test_every_post_has_a_new_idempotency_key_unless_one_is_given() -> None:
    script = Script([ok(job("queued"), 202)])
    with script.client() as client:
        client.jobs.submit("ds_1", MODEL, size=10, epsilon=0.5)
        client.jobs.submit("ds_1", MODEL, size=10, epsilon=0.5)
        client.jobs.submit("ds_1", MODEL, size=10, epsilon=0.5, idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in script.seen]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_retries_of_in_progress_are_bounded(naps: list[float]) -> None:
    with Script([problem(409, "idempotency_in_progress")]).client() as client, pytest.raises(IdempotencyInProgress):
        client.jobs.submit("ds_1", MODEL, size=10, epsilon=0.5)


@pytest.mark.parametrize("answer", [httpx.ReadError("lost"), problem(503, "dependency_unavailable", retry_after="1")])
@pytest.mark.parametrize("call", ["create_key", "rotate", "revoke", "upload", "update", "delete", "set_budget"])
def test_a_request_without_an_idempotency_key_is_sent_once(
    naps: list[float], call: str, answer: httpx.Response | httpx.TransportError
) -> None:
    script = Script([answer])
    with script.client() as client, pytest.raises((ConnectionFailed, DependencyUnavailable)):
        _call(client, call)
    assert (len(script.seen), naps) == (1, [])
    assert "Idempotency-Key" not in script.seen[0].headers


@pytest.mark.parametrize("call", ["create_key", "rotate", "revoke", "update", "delete", "set_budget"])
def test_a_rate_limited_request_is_retried(naps: list[float], call: str) -> None:
    script = Script([problem(429, "rate_limited", retry_after="2"), problem(403, "forbidden")])
    with script.client() as client, pytest.raises(Forbidden):
        _call(client, call)
    assert (len(script.seen), naps, len(set(script.bodies))) == (2, [2.0], 1)


def test_a_rate_limited_stream_is_not_retried(naps: list[float]) -> None:
    script = Script([problem(429, "rate_limited", retry_after="2")])
    with script.client() as client, pytest.raises(RateLimited):
        _call(client, "upload")
    assert (len(script.seen), naps) == (1, [])


def _call(client: Client, call: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "create_key": lambda: client.keys.create("ana", "analyst"),
        "rotate": lambda: client.keys.rotate("key_1"),
        "revoke": lambda: client.keys.revoke("key_1"),
        "upload": lambda: client.datasets.upload("ds_1", b"a\n1\n", max_null_share=None),
        "update": lambda: client.datasets.update("ds_1", description="d"),
        "delete": lambda: client.datasets.delete("ds_1"),
        "set_budget": lambda: client.datasets.set_budget("ds_1", epsilon=1.0),
    }
    calls[call]()


def test_the_key_is_sent_and_never_shown() -> None:
    script = Script([ok(DATASET)])
    with script.client() as client:
        client.datasets.get("ds_1")
        assert "cv_secret" not in repr(vars(client)) + repr(client)
    assert script.seen[0].headers["Authorization"] == "Bearer cv_secret"


def test_without_a_key_there_is_no_authorization_header() -> None:
    script = Script([ok(DATASET)])
    with script.client(api_key=None) as client:
        client.datasets.get("ds_1")
    assert "Authorization" not in script.seen[0].headers


def test_a_base_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(ValueError, match="http"):
        Client("vault.test")
