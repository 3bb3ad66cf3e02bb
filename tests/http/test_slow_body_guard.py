"""Slow bodies are ended, unless the service itself is slow."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from app.http.middleware.slow_body_guard import LeastRate, SlowBodyGuard, TooSlow
from app.main import create_app
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import declared, everything

LEAST = LeastRate(bytes_per_second=100_000, seconds=0.3)
PIECE = b"x" * 100


def _client(pieces: Iterable[bytes], pause_seconds: float) -> Receive:
    """A body with a pause before each piece; then the connection stays open."""
    left = [*pieces]

    async def receive() -> Message:
        if not left:
            await anyio.sleep_forever()
        await anyio.sleep(pause_seconds)
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    return receive


async def _nowhere(_: Message) -> None:
    raise AssertionError("nothing is answered here")


def _read(receive: Receive, work: Callable[[], Any] = lambda: None) -> int:
    """Return the number of bytes that an application receives.

    It works for ``work`` seconds after each piece.
    """
    got = 0

    async def application(_: Scope, receive: Receive, __: Send) -> None:
        nonlocal got
        while True:
            message = await receive()
            got += len(message["body"])
            await anyio.sleep(work() or 0)
            if not message["more_body"]:
                return

    async def run() -> None:
        await SlowBodyGuard(application, LEAST)({"type": "http"}, receive, _nowhere)

    anyio.run(run)
    return got


def test_a_slow_body_is_ended() -> None:
    with pytest.raises(TooSlow):
        _read(_client([PIECE] * 1000, 0.02))


def test_a_body_that_stops_is_ended() -> None:
    with pytest.raises(TooSlow):
        _read(_client([PIECE, PIECE], 3600))


def test_a_fast_start_does_not_count_in_later_windows() -> None:
    """The bytes of a whole window at once, and then a slow rest: the second window is too slow."""
    with pytest.raises(TooSlow):
        _read(_client([b"x" * 1_000_000] + [PIECE] * 1000, 0.02))


def test_a_body_that_waits_for_the_application_is_not_slow() -> None:
    """Only time spent waiting for the client counts; here the application takes twice the window."""
    assert _read(_client([PIECE] * 6, 0), lambda: 0.1) == 600


def test_after_the_body_the_connection_may_stay_silent() -> None:
    """As in a stream of events, where the server waits for the client's disconnection."""

    async def application(_: Scope, receive: Receive, __: Send) -> None:
        assert not (await receive())["more_body"]
        with anyio.move_on_after(LEAST.seconds * 3) as waiting:
            await receive()
        assert waiting.cancelled_caught

    async def run() -> None:
        await SlowBodyGuard(application, LEAST)({"type": "http"}, _client([PIECE], 0), _nowhere)

    anyio.run(run)


def _answer(app: FastAPI, method: str, path: str, headers: dict[str, str], receive: Receive) -> httpx.Response:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": raw, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "scheme": "http"}
    anyio.run(app, scope | {"http_version": "1.1", "root_path": ""}, receive, send)
    body = b"".join(message.get("body", b"") for message in sent)
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=body)


@pytest.mark.parametrize("kind", ["upload", "json"])
def test_a_slow_upload_gets_an_answer_and_is_discarded(
    services: Services, client: httpx.Client, owner: rows.Key, kind: str
) -> None:
    dataset = declared(client, owner)["id"]
    before = everything(services.database, services.areas)
    app = create_app(services, least_rate=LEAST)
    if kind == "upload":
        call, body = ("PUT", f"/v1/datasets/{dataset}/content", "text/csv"), b"age,hours,sex,income_gt_50k\r\n" * 40
    else:
        call, body = ("POST", "/v1/datasets", "application/json"), json.dumps({"name": "a" * 1000}).encode()
    method, path, media_type = call
    pieces = [body[start : start + 20] for start in range(0, len(body), 20)]
    refused = _answer(app, method, path, owner.headers | {"Content-Type": media_type}, _client(pieces, 0.02))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), refused.text
    assert refused.headers["Connection"] == "close"
    assert everything(services.database, services.areas) == before
