"""Server-sent events of a job: their content, resumption and end."""

import dataclasses
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest

from app.auth.caller import Caller
from app.auth.models import ApiKey
from app.datasets.models import Dataset
from app.db import now
from app.errors import RateLimited
from app.jobs import endpoints, events, repository
from app.jobs.events import Streams, Watcher, make_event_id
from app.jobs.models import Job
from app.jobs.repository import JobNames
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.worker import House, memory_tables

NAMES = JobNames("watcher", None)
WATCHER = Watcher("key_watcher", NAMES, lambda _: None)


@pytest.fixture
def dataset_id(house: House, owner: rows.Key) -> str:
    return house.ready_dataset(owner)


def parse(raw: bytes) -> dict[str, Any]:
    fields = dict(line.split(": ", 1) for line in raw.decode().strip().splitlines())
    return fields | {"data": json.loads(fields["data"])} if "data" in fields else fields


def read(stream: AsyncIterator[bytes], *, most: int = 10) -> list[bytes]:
    async def listen() -> list[bytes]:
        events = []
        async for raw in stream:
            events.append(raw)
            if len(events) == most:
                break
        return events

    return anyio.run(listen)


def advance(house: House, job_id: str, **values: Any) -> None:
    with house.database.write() as tx:
        assert repository.change(tx, job_id, **values)


def test_stream_yields_progress_until_the_end_of_the_job(
    house: House, owner: rows.Key, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.001)
    job_id = house.job(dataset_id, owner)
    moves: list[dict[str, Any]] = [
        {"status": "running", "stage": "running", "steps_done": 0},
        {"steps_done": 2},
        {"steps_done": 2},
        {"status": "succeeded", "stage": "ended", "steps_done": 5, "release_id": "rel_x"},
    ]

    class Moving(Streams):
        def _read(self, job_id: str) -> Any:
            job = super()._read(job_id)
            if moves:
                advance(house, job_id, **moves.pop(0))
            return job

    received = [parse(raw) for raw in read(Moving(house.database).follow(job_id, None, WATCHER))]
    assert [each["event"] for each in received] == ["progress", "progress", "progress", "end"]
    fractions = [each["data"]["progress"]["fraction"] for each in received]
    assert fractions == [0.0, 0.0, 0.4, 1.0]
    assert received[-1]["data"]["release_id"] == "rel_x"
    assert len({each["id"] for each in received}) == 4


def test_stream_resumes_after_the_last_event_id(house: House, owner: rows.Key, dataset_id: str) -> None:
    job_id = house.job(dataset_id, owner)
    seen = make_event_id(house.read(job_id))
    house.runner(memory_tables).run(job_id)
    received = read(Streams(house.database).follow(job_id, seen, WATCHER))
    assert [parse(raw)["event"] for raw in received] == ["end"]


def test_silent_stream_yields_comments(
    house: House, owner: rows.Key, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.0)
    job_id = house.job(dataset_id, owner)
    ticks = iter(range(0, 10_000, 5))
    stream = Streams(house.database, clock=lambda: float(next(ticks))).follow(
        job_id, make_event_id(house.read(job_id)), WATCHER
    )
    assert set(read(stream, most=3)) == {b": waiting\n\n"}


def test_stream_ends_after_its_lifetime(
    house: House, owner: rows.Key, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.0)
    job_id = house.job(dataset_id, owner)
    ticks = iter(range(0, 100_000, 1000))
    streams = Streams(house.database, clock=lambda: float(next(ticks)))
    received = read(streams.follow(job_id, None, WATCHER))
    assert len(received) < 10
    assert streams._open == {}


def test_streams_are_bounded_in_total_and_for_each_key(house: House) -> None:
    streams = Streams(house.database)
    streams._open = Counter({WATCHER.id: events.MAX_STREAMS_EACH})
    with pytest.raises(RateLimited):
        streams.admit(WATCHER)
    streams.admit(dataclasses.replace(WATCHER, id="key_other"))
    streams._open = Counter({f"key_{number}": 1 for number in range(events.MAX_STREAMS)})
    with pytest.raises(RateLimited):
        streams.admit(WATCHER)


def test_finished_job_streams_its_end_event_over_http(
    house: House, api: httpx.Client, owner: rows.Key, analyst: rows.Key, dataset_id: str
) -> None:
    job_id = house.job(dataset_id, owner)
    house.runner(memory_tables).run(job_id)
    path = f"/v1/jobs/{job_id}/events"
    response = api.get(path, headers=owner.headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    end = parse(response.content)
    assert (end["event"], end["data"]) == ("end", api.get(f"/v1/jobs/{job_id}", headers=owner.headers).json())
    assert api.get(path, headers=owner.headers | {"Last-Event-ID": end["id"]}).status_code == 204
    problem(api.get(path, headers=analyst.headers), 404, "not_found")
    problem(api.get(path), 401, "unauthenticated")


def test_expired_key_ends_its_stream_at_once(house: House, api: httpx.Client, dataset_id: str, owner: rows.Key) -> None:
    """No event is sent after the expiry, not even the ``end`` event."""
    caller = Caller(owner.id, owner.role, "a key", expires_at=now() + timedelta(seconds=1))
    job_id = house.job(dataset_id, owner)
    assert _read_after(house, job_id, endpoints._watcher(caller, job_id, NAMES), lambda: time.sleep(1.1)) == []


@pytest.mark.parametrize("end", ["revoked", "expired", "dataset given away"])
def test_stream_ends_when_its_watcher_loses_access(
    house: House, dataset_id: str, owner: rows.Key, analyst: rows.Key, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W3: no further events of the job are sent, not even its ``end`` event."""
    monkeypatch.setattr(events, "POLL_SECONDS", 0.0)
    job_id = house.job(dataset_id, owner)
    watcher = endpoints._watcher(Caller(owner.id, owner.role, "a key"), job_id, NAMES)

    def take_away() -> None:
        with house.database.write() as tx:
            if end == "dataset given away":
                tx.get_one(Dataset, dataset_id).owner_id = analyst.id
                tx.get_one(Job, job_id).caller_id = analyst.id
            elif end == "revoked":
                tx.get_one(ApiKey, owner.id).revoked_at = now()
            else:
                tx.get_one(ApiKey, owner.id).expires_at = now()

    assert _read_after(house, job_id, watcher, take_away) == []


def test_silent_stream_of_a_revoked_key_ends_after_the_interval(house: House, dataset_id: str, owner: rows.Key) -> None:
    job_id = house.job(dataset_id, owner)
    watcher = endpoints._watcher(Caller(owner.id, owner.role, "a key"), job_id, NAMES)
    stream = Streams(house.database).follow(job_id, make_event_id(house.read(job_id)), watcher)
    with house.database.write() as tx:
        tx.get_one(ApiKey, owner.id).revoked_at = now()
    started = time.monotonic()
    assert read(stream) == []
    assert time.monotonic() - started < 10 * events.CHECK_SECONDS


def _read_after(house: House, job_id: str, watcher: Watcher, take_away: Callable[[], None]) -> list[bytes]:
    """Return the events that a stream sends after ``take_away``, while the job continues."""

    async def listen() -> list[bytes]:
        stream = Streams(house.database).follow(job_id, None, watcher)
        assert parse(await anext(stream))["event"] == "progress"
        take_away()
        advance(house, job_id, status="running", steps_done=1)
        return [raw async for raw in stream]

    return anyio.run(listen)
