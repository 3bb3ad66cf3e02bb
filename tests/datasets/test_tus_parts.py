"""Parts of an upload, as tus clients send them."""

from collections.abc import AsyncIterator, Callable

import anyio
import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.services import Services
from tests.datasets.tus import PART, TUS, send_part
from tests.factories import rows
from tests.factories.datasets import problem, stored
from tests.factories.uploads import Address, complete, offset_of, send, sent


@pytest.mark.parametrize("media_type", [None, "text/csv", "application/octet-stream", f"{PART}; charset=utf-8"])
def test_a_tus_part_has_the_media_type_of_the_protocol(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address], media_type: str | None
) -> None:
    address, before = begun(), stored(services.areas)
    more = {} if media_type is None else {"Content-Type": media_type}
    answer = send(client, owner, address, 0, **{"Tus-Resumable": "1.0.0"} | more)
    problem(answer, 415, "unsupported_media_type")
    assert stored(services.areas) == before
    assert offset_of(client, owner, address) == 0


def test_a_tus_part_at_another_offset_is_refused(
    client: httpx.Client, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address = created(Upload_Length="6")
    assert send_part(client, owner, address, 0, b"abc").status_code == 204
    answer = send_part(client, owner, address, 0, b"abc")
    assert problem(answer, 409, "offset_mismatch")["offset"] == 3
    assert offset_of(client, owner, address) == 3


def test_a_deferred_length_is_set_once_by_a_part(
    client: httpx.Client, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address = created(Upload_Defer_Length="1")
    assert send_part(client, owner, address, 0, b"abc").status_code == 204
    head = client.head(address, headers=owner.headers | TUS).headers
    assert (head.get("upload-defer-length"), head.get("upload-length")) == ("1", None)
    for length, status in [("2", 422), (str(2**20 + 1), 413), ("x", 422), ("5", 204), ("5", 204), ("6", 422)]:
        body = b"d" if length == "5" else b""
        part = send_part(client, owner, address, offset_of(client, owner, address), body, **{"Upload-Length": length})
        assert part.status_code == status, length
    head = client.head(address, headers=owner.headers | TUS).headers
    assert (head.get("upload-defer-length"), head.get("upload-length"), head["upload-offset"]) == (None, "5", "5")
    problem(send_part(client, owner, address, 5, b"f"), 413, "content_too_large")
    assert complete(client, owner, address).status_code == 202


def test_a_length_is_not_set_by_clients_without_tus(
    client: httpx.Client, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    assert send(client, owner, address, 0, b"abc", Upload_Length="3").status_code == 204
    assert sent(client, owner, address, b"def") == 6


def test_a_checksum_is_refused_instead_of_ignored(
    client: httpx.Client, services: Services, owner: rows.Key, created: Callable[..., Address]
) -> None:
    address, before = created(Upload_Length="3"), stored(services.areas)
    answer = send_part(client, owner, address, 0, b"abc", **{"Upload-Checksum": "sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0="})
    problem(answer, 422, "invalid_request")
    assert stored(services.areas) == before


@pytest.mark.parametrize(("tus", "stored_bytes"), [(True, 2 * 2**17), (False, 0)])
def test_of_a_broken_body_tus_stores_the_first_bytes(
    client: httpx.Client,
    application: FastAPI,
    owner: rows.Key,
    begun: Callable[..., Address],
    tus: bool,
    stored_bytes: int,
) -> None:
    """A client that sends the whole file continues after the last stored byte."""
    address = begun()
    headers = owner.headers | {"Upload-Offset": "0"} | (TUS | {"Content-Type": PART} if tus else {})
    anyio.run(send_broken_part, application, address, headers)
    assert offset_of(client, owner, address) == stored_bytes
    assert sent(client, owner, address, b"rest") == stored_bytes + 4


async def send_broken_part(application: FastAPI, address: Address, headers: dict[str, str]) -> None:
    """Send two messages of a longer body, then disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": bytes(2**17), "more_body": True} for _ in range(2)]

    async def arrive() -> AsyncIterator[Message]:
        for message in messages:
            yield message
        while True:
            yield {"type": "http.disconnect"}

    received = arrive()

    async def receive() -> Message:
        return await anext(received)

    async def answer(_: Message) -> None:
        """Nobody is connected."""

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "PATCH",
        "scheme": "http",
        "path": address,
        "raw_path": address.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"corevault.test"),
            (b"content-length", b"1000000"),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
        ],
        "client": ("127.0.0.1", 50_000),
        "server": ("corevault.test", 80),
    }
    await application(scope, receive, answer)
