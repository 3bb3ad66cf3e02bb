"""Caps on the objects of one caller. The first one above a cap is refused and changes nothing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from app.main import create_app
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import declaration, declared, everything, problem
from tests.factories.transport import AppTransport
from tests.factories.worker import House, job_body

CAP = 3


@pytest.fixture
def capped(house: House) -> Services:
    limits = replace(house.services.limits, datasets=CAP, active_jobs=CAP, keys=CAP, open_uploads=CAP)
    return replace(house.services, limits=limits)


@pytest.fixture
def calls(capped: Services) -> Iterator[httpx.Client]:
    with httpx.Client(transport=AppTransport(create_app(capped)), base_url="http://corevault.test") as client:
        yield client


def _fills_up(call: Callable[[], httpx.Response], services: Services, room: int) -> None:
    assert [call().status_code < 300 for _ in range(room)] == [True] * room
    before = everything(services.database, services.areas)
    problem(call(), 409, "state_conflict")
    assert everything(services.database, services.areas) == before


def test_datasets_of_an_owner_are_capped(calls: httpx.Client, capped: Services, owner: rows.Key) -> None:
    _fills_up(lambda: calls.post("/v1/datasets", json=declaration(), headers=owner.headers), capped, CAP)
    gone = calls.get("/v1/datasets", headers=owner.headers).json()["items"][0]["id"]
    assert calls.delete(f"/v1/datasets/{gone}", headers=owner.headers).status_code == 200
    declared(calls, owner)


def test_another_owner_has_a_separate_cap(calls: httpx.Client, capped: Services, owner: rows.Key) -> None:
    for _ in range(CAP):
        declared(calls, owner)
    with capped.database.write() as tx:
        other = rows.api_key(tx, "owner")
    declared(calls, other)


def test_jobs_of_a_caller_are_capped(calls: httpx.Client, house: House, capped: Services, owner: rows.Key) -> None:
    body = job_body(house.ready_dataset(owner))
    _fills_up(lambda: calls.post("/v1/jobs", json=body, headers=owner.headers), capped, CAP)
    running = calls.get("/v1/jobs", headers=owner.headers).json()["items"][0]["id"]
    calls.post(f"/v1/jobs/{running}/cancel", headers=owner.headers)
    assert calls.post("/v1/jobs", json=body, headers=owner.headers).status_code == 202


def test_a_repetition_is_answered_even_at_the_cap(calls: httpx.Client, house: House, owner: rows.Key) -> None:
    body, headers = job_body(house.ready_dataset(owner)), owner.headers | {"Idempotency-Key": "once"}
    first = calls.post("/v1/jobs", json=body, headers=headers).json()
    for _ in range(CAP - 1):
        calls.post("/v1/jobs", json=body, headers=owner.headers)
    assert calls.post("/v1/jobs", json=body, headers=headers).json()["id"] == first["id"]


def test_keys_of_the_server_are_capped(calls: httpx.Client, capped: Services, admin: rows.Key) -> None:
    new = {"name": "ward 7", "role": "analyst"}
    _fills_up(lambda: calls.post("/v1/api-keys", json=new, headers=admin.headers), capped, CAP - 1)
    last = calls.get("/v1/api-keys", headers=admin.headers).json()["items"][0]["id"]
    calls.delete(f"/v1/api-keys/{last}", headers=admin.headers)
    assert calls.post("/v1/api-keys", json=new, headers=admin.headers).status_code == 201


def test_concurrent_calls_do_not_pass_the_cap(calls: httpx.Client, capped: Services, owner: rows.Key) -> None:
    def declare(_: int) -> int:
        return calls.post("/v1/datasets", json=declaration(), headers=owner.headers).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(declare, range(12))) == [201] * CAP + [409] * (12 - CAP)


def test_concurrent_uploads_do_not_pass_the_cap(calls: httpx.Client, capped: Services, owner: rows.Key) -> None:
    """They belong to different datasets, so no dataset lock orders them."""
    places = [f"/v1/datasets/{declared(calls, owner)['id']}/uploads" for _ in range(CAP)]

    def begin(number: int) -> int:
        body = {"media_type": "text/csv"}
        return calls.post(places[number % CAP], json=body, headers=owner.headers).status_code

    with ThreadPoolExecutor(12) as pool:
        assert sorted(pool.map(begin, range(12))) == [201] * CAP + [409] * (12 - CAP)
