"""Connections whose clients are slow: headers, like bodies, must arrive in time (slow-client attacks).

The server ends a connection that is silent between two requests. It would wait without end for the first byte of a new
connection, for the rest of headers of which a byte is there, and for the rest of a body that is answered already.
"""

import asyncio
from asyncio.events import TimerHandle
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.cli.unread_answers import ReadProtocol


def prompt_protocol(head_seconds: float, unread_seconds: float) -> type[HttpToolsProtocol]:
    """The server's protocol: strict about messages, and patient with slow clients for a bounded time only.

    It closes a connection that leaves no request to work on for ``head_seconds``, or whose client reads next to nothing
    of an answer over ``unread_seconds``.
    """
    limits = {"head_seconds": head_seconds, "unread_seconds": unread_seconds}
    return type("LimitedProtocol", (PromptProtocol,), limits)


class PromptProtocol(ReadProtocol):
    """Limits the time for a request's head.

    It begins with the connection, and with the first byte after an answer; a request's complete headers end it. What a
    request waits for from then on is others' to limit.
    """

    head_seconds: ClassVar[float]
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the server has it
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
