"""Connections whose client takes its time: headers, like bodies (:mod:`app.http.pace`), may not trickle for ever.

The server ends a connection that is silent between two requests. It would wait without end for the first byte of a new
connection, for the rest of headers of which a byte is there, and for the rest of a body that is answered already.
"""

import asyncio
from asyncio.events import TimerHandle

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def prompt_protocol(seconds: float) -> type[HttpToolsProtocol]:
    """The server's protocol, which closes a connection that leaves no request to work on for ``seconds``.

    The time begins with the connection, and with the first byte after an answer; a request's complete headers end it.
    What a request waits for from then on is others' to limit.
    """

    class PromptProtocol(HttpToolsProtocol):
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
            self._deadline = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return PromptProtocol
