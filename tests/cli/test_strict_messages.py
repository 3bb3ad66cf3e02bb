"""Oversized and ambiguous HTTP messages are refused while their bytes arrive."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.cli.strict_messages import HEAD_BYTES, HEADERS, PIPELINED
from app.config import Settings
from app.http.middleware.outer_middleware import OuterMiddleware
from tests.cli.test_tls import _api, _live
from tests.factories.served import Address, served

pytestmark = pytest.mark.sqlite

START = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
GET = b"GET /seen HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"
SENT_BYTES = 64 * 2**20
GROWTH_BYTES = 32 * 2**20


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Return the request after its body has arrived; ``/deaf`` does not wait for the body."""
    request = Request(scope, receive)
    body = b"" if scope["path"] == "/deaf" else await request.body()
    names = [name.decode() for name, _ in scope["headers"]]
    response: Response = JSONResponse({"path": scope["path"], "body": body.decode(), "headers": names})
    await response(scope, receive, send)


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with served(OuterMiddleware(_echo)) as address:
        yield address


@contextmanager
def connected(address: Address) -> Iterator[socket.socket]:
    with socket.create_connection(address, timeout=30) as client:
        yield client


def exchanged(address: Address, *pieces: bytes) -> bytes:
    """Read until the server closes the connection."""
    received = b""
    with connected(address) as client:
        for piece in pieces:
            client.sendall(piece)
        while data := client.recv(65_536):
            received += data
    return received


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def refusal(received: bytes, status: int) -> dict[str, object]:
    """Parse the problem details that end the connection."""
    assert statuses(received)[-1] == status
    head, _, body = received.rpartition(b"HTTP/1.1 %d" % status)[2].partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"x-request-id: req_" in head
    assert b"connection: close" in head.lower()
    problem: dict[str, object] = json.loads(body)
    assert (problem["code"], problem["status"]) == ("invalid_request", status)
    return problem


LONG = b"a" * (2 * HEAD_BYTES)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + LONG,
        START + b"X: " + LONG,
        START + LONG,
        START + b"X: " + LONG + b"\r\n\r\n",
        START + b"".join(b"X%d: %s\r\n" % (number, b"a" * 1000) for number in range(HEADERS - 2)) + b"\r\n",
        b"\r\n" * HEAD_BYTES,
        START + CHUNKED + b"\r\n3\r\nabc\r\n0\r\nX: " + LONG,
        START + CHUNKED + b"\r\n3\r\nabc\r\n0\r\n" + b"X: a\r\n" * HEAD_BYTES,
        START + CHUNKED + b"\r\n3;" + LONG,
        START + b"a:\r\n" * (HEADERS + 1) + b"\r\n",
    ],
    ids=["url", "value", "name", "whole", "sum", "blank lines", "trailer", "trailers", "chunk extension", "count"],
)
def test_oversized_head_is_refused(address: Address, head: bytes) -> None:
    refusal(exchanged(address, head), 431)


def test_oversized_head_that_arrives_byte_by_byte_is_refused(address: Address) -> None:
    head = START + b"X: " + LONG
    refusal(exchanged(address, *(head[place : place + 97] for place in range(0, HEAD_BYTES + 97, 97))), 431)


def test_largest_allowed_head_is_answered(address: Address) -> None:
    rest = b"Connection: close\r\nX: \r\n\r\n"
    head = GET.removesuffix(b"\r\n") + rest
    assert statuses(exchanged(address, head.replace(b"X: ", b"X: " + b"a" * (HEAD_BYTES - len(head))))) == [200]


def test_large_bodies_do_not_count_as_heads(address: Address) -> None:
    body = b"x" * (5 * HEAD_BYTES)
    last = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    sized = START + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunked = START + CHUNKED + b"\r\n" + b"%x\r\n%s\r\n" % (len(body), body) * 3 + b"0\r\n\r\n"
    received = exchanged(address, sized, chunked, last)
    assert statuses(received) == [200, 200, 200]
    assert received.count(b"x" * 100) > 4 * 5 * HEAD_BYTES // 100 - 10


def test_later_request_is_refused_after_the_earlier_responses(address: Address) -> None:
    """Each response is complete, and they have the order of the requests."""
    received = exchanged(address, GET * 3 + START + b"X: " + LONG)
    assert statuses(received) == [200, 200, 200, 431]
    refusal(received, 431)


def test_too_many_pipelined_requests_are_refused(address: Address) -> None:
    """Otherwise a block of small requests would use 200 times its size in memory."""
    received = exchanged(address, GET * 2000)
    assert statuses(received) == [200] * (PIPELINED + 1) + [400]
    refusal(received, 400)


AMBIGUOUS = {
    "identity and chunked": START + b"Transfer-Encoding: identity\r\n" + CHUNKED + b"\r\n" + CHUNKS,
    "identity, chunked": START + b"Transfer-Encoding: identity, chunked\r\n\r\n" + CHUNKS,
    "gzip, chunked": START + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "chunked twice": START + CHUNKED * 2 + b"\r\n" + CHUNKS,
    "chunked, identity": START + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "identity": START + b"Transfer-Encoding: identity\r\n\r\nabc",
    "vertical tab": START + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKS,
    "space before colon": START + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS,
    "line folding": START + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + CHUNKS,
    "chunked in 1.0": START.replace(b"1.1", b"1.0") + CHUNKED + b"\r\n" + CHUNKS,
    "length and chunked": START + b"Content-Length: 3\r\n" + CHUNKED + b"\r\n" + CHUNKS,
    "chunked and length": START + CHUNKED + b"Content-Length: 3\r\n\r\n" + CHUNKS,
    "length twice": START + b"Content-Length: 3\r\n" * 2 + b"\r\nabc",
    "two lengths": START + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "list of lengths": START + b"Content-Length: 3, 3\r\n\r\nabc",
    "signed length": START + b"Content-Length: +3\r\n\r\nabc",
    "no length": START + b"Content-Length:\r\n\r\nabc",
    "two hosts": START + b"Host: b\r\n\r\n",
    "body and upgrade": START + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc",
    "chunks and upgrade": START + b"Connection: upgrade\r\nUpgrade: h2c\r\n" + CHUNKED + b"\r\n" + CHUNKS,
    "bare line feeds": GET.replace(b"\r\n", b"\n"),
    "null": START + b"X: a\0b\r\n\r\n",
    "HTTP/0.9": b"GET /seen\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01",
    "bad chunk size": START + CHUNKED + b"\r\n0x3\r\nabc\r\n0\r\n\r\n",
    "overlong chunk": START + CHUNKED + b"\r\n3\r\nabcd\r\n0\r\n\r\n",
    "bad URL": b"GET http://[ HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("message", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_message_is_refused(address: Address, message: bytes) -> None:
    """Bytes after it are not read as another request."""
    received = exchanged(address, message + GET)
    assert statuses(received) == [400]
    refusal(received, 400)


@pytest.mark.parametrize("message", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_message_does_not_affect_earlier_responses(address: Address, message: bytes) -> None:
    received = exchanged(address, GET * 2 + message + GET)
    assert statuses(received) == [200, 200, 400]
    refusal(received, 400)


def test_fault_after_an_answered_head_ends_the_connection(address: Address) -> None:
    message = START.replace(b"/echo", b"/deaf") + CHUNKED + b"\r\n"
    with connected(address) as client:
        client.sendall(message)
        received = b""
        while not received.endswith(b"}"):
            received += client.recv(65_536)
        assert statuses(received) == [200]
        client.sendall(b"no chunk\r\n" + GET)
        assert client.recv(65_536) == b""


def test_trailers_do_not_count_as_headers(address: Address) -> None:
    trailer = b"3\r\nabc\r\n0\r\nAuthorization: x\r\n\r\n"
    last = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    received = exchanged(address, START + CHUNKED + b"\r\n" + trailer, last)
    assert statuses(received) == [200, 200]
    assert b"authorization" not in received


@pytest.mark.parametrize("requests", [3, 20_000], ids=["few", "more than one read"])
def test_bytes_after_an_upgrade_request_are_not_answered(address: Address, requests: int) -> None:
    """The connection is not reset, so the client can read the response."""
    upgrade = GET.replace(b"\r\n\r\n", b"\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")
    received = exchanged(address, upgrade, GET * requests)
    assert statuses(received) == [200]
    assert b"connection: close" in received


@pytest.mark.long
def test_endless_headers_use_no_memory(tmp_path: Path) -> None:
    """W10: a client without a key cannot exhaust the API's memory; at most 64 MiB are sent."""
    settings = Settings(data_dir=tmp_path)
    with _api(settings, "127.0.0.1") as (process, port):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            _live(client, process)
        before = _memory_bytes(process.pid)
        sent = 0
        with connected(("127.0.0.1", port)) as client:
            client.sendall(START + b"X: ")
            try:
                while sent < SENT_BYTES:
                    sent += client.send(b"a" * 65_536)
            except (BrokenPipeError, ConnectionResetError):
                pass
        assert sent < SENT_BYTES / 2
        assert _memory_bytes(process.pid) - before < GROWTH_BYTES


def _memory_bytes(pid: int) -> int:
    """Return the peak resident memory of the process."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
