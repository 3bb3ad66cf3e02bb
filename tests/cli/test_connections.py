"""Connections with slow headers are closed; slow bodies and responses are allowed."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.config import Settings
from tests.cli.test_tls import _api, _live
from tests.factories.served import Address, served

pytestmark = pytest.mark.slow  # clients wait

SECONDS = 0.4
PATIENCE_SECONDS = 30
REQUEST = b"GET /quick HTTP/1.1\r\nHost: a\r\n"
ANSWER_END = b"\r\n\r\ndone"


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer ``/slow`` after a wait, ``/read`` after the body, and ``/quick`` at once."""
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * SECONDS)
    while scope["path"] == "/read" and (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with served(_application, head_seconds=SECONDS) as address:
        yield address


@contextmanager
def connected(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=PATIENCE_SECONDS) as client:
        yield client


def answered(client: socket.socket) -> bool:
    """Whether a complete response arrives before the connection ends."""
    received = b""
    while not received.endswith(ANSWER_END):
        try:
            data = client.recv(4096)
        except ConnectionResetError:
            return False
        if not data:
            return False
        received += data
    return True


def trickled(client: socket.socket, piece: bytes) -> bool:
    """Whether the connection ends while ``piece`` is sent repeatedly."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            client.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(SECONDS / 10)
    return False


def test_silent_connection_is_closed(address: Address) -> None:
    with connected(address) as client:
        assert not answered(client)


@pytest.mark.parametrize("start", [REQUEST, b"G", b"\r\n"], ids=["headers", "request line", "blank lines"])
def test_slow_headers_end_the_connection(address: Address, start: bytes) -> None:
    with connected(address) as client:
        client.sendall(start)
        assert trickled(client, b"\r\n" if start == b"\r\n" else b"A: b\r\n" if start == REQUEST else b"E")


def test_slow_headers_of_a_later_request_end_the_connection(address: Address) -> None:
    with connected(address) as client:
        client.sendall(REQUEST + b"\r\n")
        assert answered(client)
        client.sendall(REQUEST)
        assert trickled(client, b"A: b\r\n")


def test_slow_body_that_is_answered_ends_the_connection(address: Address) -> None:
    with connected(address) as client:
        client.sendall(REQUEST + b"Content-Length: 1000000\r\n\r\n")
        assert answered(client)
        assert trickled(client, b"x")


def test_client_that_waits_for_a_response_is_not_disconnected(address: Address) -> None:
    with connected(address) as client:
        client.sendall(REQUEST.replace(b"/quick", b"/slow") + b"\r\n")
        assert answered(client)
        time.sleep(2 * SECONDS)
        client.sendall(REQUEST + b"\r\n")
        assert answered(client)


def test_slow_body_that_is_read_does_not_end_the_connection(address: Address) -> None:
    with connected(address) as client:
        client.sendall(REQUEST.replace(b"/quick", b"/read") + b"Content-Length: 5\r\n\r\n")
        for _ in range(5):
            time.sleep(SECONDS / 2)
            client.sendall(b"x")
        assert answered(client)


@pytest.mark.process
@pytest.mark.sqlite
def test_setting_of_the_limit_reaches_the_server(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, header_seconds=SECONDS)
    with _api(settings, "127.0.0.1") as (process, port):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            _live(client, process)
        with connected(("127.0.0.1", port)) as trickling:
            trickling.sendall(REQUEST)
            assert trickled(trickling, b"A: b\r\n")
