"""Rate limits over HTTP: headers, refusals, and callers who are not limited."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from app.db import Database, now
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import MemoryWindows, Rate
from app.http.rate_limits.rates import RateLimits
from app.main import create_app
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import everything, problem
from tests.factories.transport import AppTransport

REQUESTS, FAILURES = Rate(100, 60), Rate(20, 60)
WRONG = {"Authorization": "Bearer cv_" + "A" * 43}


@pytest.fixture
def limited(services: Services) -> Services:
    rates = RateLimits(MemoryWindows(), REQUESTS, FAILURES, TrustedProxies.of(["127.0.0.0/8"]))
    return replace(services, rates=rates)


@pytest.fixture
def calls(limited: Services) -> Iterator[httpx.Client]:
    with httpx.Client(transport=AppTransport(create_app(limited)), base_url="http://corevault.test") as client:
        yield client


def test_every_answer_states_the_limit_of_the_key(calls: httpx.Client, owner: rows.Key) -> None:
    answers = [calls.get("/v1/me", headers=owner.headers) for _ in range(2)]
    assert [answer.headers["RateLimit-Policy"] for answer in answers] == ['"key";q=100;w=60'] * 2
    standings = [re.fullmatch(r'"key";r=(\d+);t=(\d+)', answer.headers["RateLimit"]) for answer in answers]
    assert [match and match[1] for match in standings] == ["99", "98"]


def test_a_refusal_states_the_limit_too(calls: httpx.Client, owner: rows.Key) -> None:
    refused = calls.get("/v1/datasets/ds_none", headers=owner.headers)
    assert refused.status_code == 404
    assert "RateLimit" in refused.headers


def test_a_burst_of_100_passes_and_the_next_gets_retry_after(
    calls: httpx.Client, owner: rows.Key, analyst: rows.Key
) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: calls.get("/v1/me", headers=owner.headers), range(130)))
    assert sorted(answer.status_code for answer in answers) == [200] * 100 + [429] * 30
    refused = next(answer for answer in answers if answer.status_code == 429)
    problem(refused, 429, "rate_limited")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["RateLimit"].startswith('"key";r=0;')
    assert calls.get("/v1/me", headers=analyst.headers).status_code == 200


def test_a_rate_limited_call_changes_nothing(
    calls: httpx.Client, limited: Services, owner: rows.Key, admin: rows.Key
) -> None:
    for _ in range(100):
        calls.get("/v1/me", headers=admin.headers)
    before = everything(limited.database, limited.areas)
    body = {"name": "ward 7", "role": "owner"}
    problem(calls.post("/v1/api-keys", json=body, headers=admin.headers), 429, "rate_limited")
    assert everything(limited.database, limited.areas) == before


def test_failed_sign_ins_are_limited_by_address_not_valid_keys(calls: httpx.Client, owner: rows.Key) -> None:
    answers = [calls.get("/v1/me", headers=WRONG) for _ in range(22)]
    assert [answer.status_code for answer in answers] == [401] * 20 + [429] * 2
    problem(answers[-1], 429, "rate_limited")
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert calls.get("/v1/me", headers=owner.headers).status_code == 200
    assert calls.get("/v1/me").status_code == 401, "no credential is none that failed"


def test_clients_behind_a_trusted_proxy_count_separately(calls: httpx.Client) -> None:
    for _ in range(20):
        calls.get("/v1/me", headers=WRONG | {"X-Forwarded-For": "11.0.0.1"})
    assert calls.get("/v1/me", headers=WRONG | {"X-Forwarded-For": "9.9.9.9, 11.0.0.1"}).status_code == 429
    assert calls.get("/v1/me", headers=WRONG | {"X-Forwarded-For": "11.0.0.2"}).status_code == 401


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("11.0.0.1", None, "11.0.0.1"),
        ("11.0.0.1", "12.0.0.1", "11.0.0.1"),
        ("10.0.0.1", "12.0.0.1", "12.0.0.1"),
        ("10.0.0.1", "13.0.0.1, 12.0.0.1, 10.0.0.2", "12.0.0.1"),
        ("10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "canary-7461", "unknown"),
        ("2001:db8:1:2:3:4:5:6", None, "2001:db8:1:2::/64"),
        ("::ffff:11.0.0.1", None, "11.0.0.1"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy(peer: str, forwarded: str | None, expected: str) -> None:
    headers = [] if forwarded is None else [(b"x-forwarded-for", forwarded.encode())]
    scope = {"type": "http", "client": (peer, 1), "headers": headers}
    assert TrustedProxies.of(["10.0.0.0/8"]).client(scope) == expected


def test_public_reads_and_probes_are_not_counted(calls: httpx.Client) -> None:
    for path in ("/v1/releases", "/v1/keys", "/health/live"):
        for _ in range(REQUESTS.amount + 1):
            answer = calls.get(path)
        assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)


def test_a_revoked_key_counts_as_a_failed_sign_in(calls: httpx.Client, database: Database) -> None:
    with database.write() as tx:
        ended = rows.api_key(tx, revoked_at=now())
    codes = [calls.get("/v1/me", headers=ended.headers).status_code for _ in range(21)]
    assert codes == [401] * 20 + [429]
