"""A client that does not read its response is disconnected; a slow client gets the whole response."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from starlette.types import Receive, Scope, Send

from app.cli.unread_answers import PIECE_BYTES, ReadProtocol
from tests.factories.served import Address, served

pytestmark = pytest.mark.slow  # clients wait

SECONDS = 0.4
LARGE = b"x" * (16 * 2**20)
SMALL = b"y" * 2**19
ended = threading.Event()


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer ``/large`` and ``/small`` in one message, and ``/stream`` in small pieces without end."""
    if scope["path"] == "/stream":
        await _stream(receive, send)
        return
    body = LARGE if scope["path"] == "/large" else SMALL
    headers = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    ended.set()


async def _stream(receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await receive()
    gone = asyncio.ensure_future(receive())
    while not gone.done():
        await send({"type": "http.response.body", "body": b"z" * 256, "more_body": True})
        await asyncio.sleep(0.005)
    ended.set()


@pytest.fixture
def address() -> Iterator[Address]:
    ended.clear()
    with served(_application, unread_seconds=SECONDS) as address:
        yield address


@contextmanager
def asked(address: Address, path: bytes) -> Iterator[socket.socket]:
    """A client with a small receive buffer that has sent a request."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        client.settimeout(30)
        client.connect(address)
        client.sendall(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path)
        yield client


def read(client: socket.socket) -> int:
    """Count the bytes until the connection ends."""
    count = 0
    with suppress(ConnectionResetError):
        while data := client.recv(8192):
            count += len(data)
    return count


@pytest.mark.parametrize("path", [b"/large", b"/stream"])
def test_client_that_reads_nothing_is_disconnected(address: Address, path: bytes) -> None:
    with asked(address, path) as client:
        assert ended.wait(30 * SECONDS)
        assert read(client) < len(LARGE) / 2


@pytest.mark.long
def test_slow_client_gets_the_whole_response(address: Address) -> None:
    """It reads 200 KB a second for some time, and then the rest.

    The server has not sent much of the rest before.
    """
    with asked(address, b"/large") as client:
        slowly = 0
        while slowly < 80 * 8192:
            slowly += len(client.recv(8192))
            time.sleep(SECONDS / 10)
        assert not ended.is_set()
        assert slowly + read(client) > len(LARGE)


def test_client_that_waits_between_requests_is_not_disconnected(address: Address) -> None:
    with socket.create_connection(address, timeout=30) as client:
        time.sleep(3 * SECONDS)
        client.sendall(b"GET /small HTTP/1.1\r\nHost: a\r\n\r\n")
        assert read(client) > len(SMALL)


def test_large_body_is_not_buffered_for_each_client(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    buffered: list[int] = []
    genuine = ReadProtocol._check_reader

    def watched(self: ReadProtocol) -> None:
        buffered.append(self.transport.get_write_buffer_size())
        genuine(self)

    monkeypatch.setattr(ReadProtocol, "_check_reader", watched)
    with asked(address, b"/large"):
        assert ended.wait(30 * SECONDS)
    assert 0 < max(buffered) <= 4 * PIECE_BYTES
