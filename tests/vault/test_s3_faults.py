"""Faults of an S3 server are reported as unavailable.

The server may be down, deny access, be full or never answer. Its messages are not repeated.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.errors import DependencyUnavailable
from app.vault import s3_keys
from app.vault.store import ObjectStore, draw_name
from app.vault.stores import open_store

NAME = draw_name()
CALLS = {
    "open": lambda store: store.open(NAME),
    "publish": lambda store: store.create().publish(),
    "delete": lambda store: store.delete(NAME),
    "leave": lambda store: store.leave(NAME, b"x"),
    "note": lambda store: store.note(NAME),
    "delete_unfinished": lambda store: store.delete_unfinished(0),
}

pytestmark = pytest.mark.slow  # repeated calls wait


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-somebody")


@pytest.fixture
def single_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single attempt, because the library waits between attempts."""
    monkeypatch.setattr(s3_keys, "ATTEMPTS", 1)


def store_at(port: int) -> ObjectStore:
    return open_store(f"s3://bucket/prefix?endpoint=http://127.0.0.1:{port}&region=us-east-1")


def check(store: ObjectStore, call: str) -> None:
    with pytest.raises(DependencyUnavailable) as refusal:
        CALLS[call](store)
    assert refusal.value.__cause__ is None
    assert refusal.value.detail == DependencyUnavailable.default


@contextmanager
def refusing(status: int, code: str) -> Iterator[int]:
    """A server that answers every request with one error."""
    body = f"<Error><Code>{code}</Code><Message>the-bucket-of-a-stranger</Message></Error>".encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            with suppress(ValueError):
                self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815  (the library's names)

        def log_message(self, *_: object) -> None:
            """Log no line."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.usefixtures("single_attempts")
@pytest.mark.parametrize("call", CALLS)
def test_a_server_that_is_down_is_unavailable(call: str) -> None:
    _check_down(call)


def test_repeated_attempts_end_with_the_same_error() -> None:
    """With as many attempts as the service makes."""
    _check_down("publish")


def _check_down(call: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens there
        check(store_at(taken.getsockname()[1]), call)


@pytest.mark.long
@pytest.mark.usefixtures("single_attempts")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (507, "InsufficientStorage"), (400, "Nonsense")])
def test_a_server_that_refuses_is_unavailable(call: str, status: int, code: str) -> None:
    with refusing(status, code) as port:
        check(store_at(port), call)


@pytest.mark.usefixtures("single_attempts")
def test_a_server_that_never_answers_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of the test is the assertion: the call does not wait without end."""
    monkeypatch.setattr(s3_keys, "REQUEST_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        check(store_at(silent.getsockname()[1]), "publish")


def test_a_failing_write_ends_its_block_with_the_same_error() -> None:
    with refusing(507, "InsufficientStorage") as port:
        store = store_at(port)
        with pytest.raises(DependencyUnavailable), store.create() as target:
            target.write(bytes(20 << 20))
