"""Protection against slow clients (slowloris): a request's head must arrive in time.

Uvicorn closes a connection only if it is idle between two requests. Without this module, uvicorn would wait without
limit for the first byte of a new connection, and for the rest of headers that have begun. It would also wait for the
rest of a body that it has already answered.
"""

import asyncio
from asyncio.events import TimerHandle
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.cli.unread_answers import ReadProtocol


def make_protocol(head_seconds: float, unread_seconds: float) -> type[HttpToolsProtocol]:
    """Make a protocol class for uvicorn, with these limits for slow clients.

    A connection is closed if no complete request head arrives within ``head_seconds``. It is also closed if its client
    reads too few bytes of a response over ``unread_seconds``.
    """
    limits = {"head_seconds": head_seconds, "unread_seconds": unread_seconds}
    return type("LimitedProtocol", (PromptProtocol,), limits)


class PromptProtocol(ReadProtocol):
    """Limits the time for a request's head.

    The time starts with the connection, and again with the first byte after a response. It ends when the headers are
    complete. Other classes limit the time for bodies and responses.
    """

    head_seconds: ClassVar[float]
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # same signature as the server's class
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is None and self.cycle.response_complete:
            self._wait()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.head_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
