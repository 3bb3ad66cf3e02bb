"""Checks of the size and framing of HTTP messages while their bytes arrive.

The application answers a refused message like any other error. The refusal comes after the responses to earlier
requests of the connection.
"""

import asyncio
from typing import Any, Final, cast

from httptools import HttpParserError
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.http.errors.messages import HeadTooLarge, MessageRefused, refuse_message

HEAD_BYTES: Final = 2**16
"""Largest size of a request line with its headers, and of the bytes between two pieces of a chunked body."""
HEADERS: Final = 128
"""Largest number of header lines of a request."""
PIPELINED: Final = 16
"""Largest number of requests of a connection that wait for the response to an earlier one."""
LINGER_SECONDS: Final = 1.0
LINGER_BYTES: Final = 2**20
"""Limits on how long, and for how much further input, a connection stays open after its last response.

The client needs this time to read the response.
"""
_TOO_LARGE: Final = f"The request line and headers, or the trailers, have more than {HEAD_BYTES} bytes. Send fewer."
_TOO_MANY: Final = f"The request has more than {HEADERS} headers. Send fewer."
_MALFORMED: Final = "The request is not a valid HTTP/1.1 message."
_CODING: Final = "Send a body with Content-Length, or in HTTP/1.1 with only 'Transfer-Encoding: chunked'."
_UPGRADE: Final = "Remove the Upgrade header from requests with a body. This server supports only HTTP/1.1."
_IMPATIENT: Final = f"Read the responses of earlier requests first. At most {PIPELINED} requests may wait."


class StrictProtocol(HttpToolsProtocol):
    """An HTTP protocol that refuses large heads and ambiguous messages.

    It limits the head, the trailers and the chunk extensions of a message. It refuses a message whose end two servers
    could interpret differently.
    """

    _overhead = 0  # bytes received since the last piece of a body, end of a head or end of a message
    _advanced = False  # whether the bytes that are being parsed contained such a piece or end
    _body_open = False  # whether the head of a message is complete, but not yet its body
    _ignores_input, _ignored = False, 0
    _running: RequestResponseCycle | None = None

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            self._ignored += len(data)
            if self._ignored > LINGER_BYTES:
                self.transport.close()
            return
        rest = memoryview(data)
        while rest and not self._ignores_input:
            piece, rest = rest[: HEAD_BYTES - self._overhead], rest[HEAD_BYTES - self._overhead :]
            self._advanced = False
            super().data_received(piece)  # type: ignore[arg-type]  # the parser takes any buffer
            self._overhead = 0 if self._advanced else self._overhead + len(piece)
            if self._overhead >= HEAD_BYTES:
                self._refuse(HeadTooLarge(_TOO_LARGE))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; drop trailers, which must not count as headers (RFC 9110, section 6.5.1)."""
        if self._body_open:
            return
        if len(self.headers) >= HEADERS:
            self._stop(HeadTooLarge(_TOO_MANY))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._advanced = True
        if (refusal := self._framing_refusal()) is not None:
            self._stop(refusal)
        super().on_headers_complete()
        if len(self.pipeline) > PIPELINED:
            self.pipeline.popleft()
            self._stop(MessageRefused(_IMPATIENT))
        self._body_open = True
        if self.parser.should_upgrade():  # the parser treats all further bytes as another protocol
            self.cycle.keep_alive, self._ignores_input = False, True
            self.cycle.transport = self._lingering()

    def on_body(self, body: bytes) -> None:
        self._advanced = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._advanced, self._body_open = True, False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a message that the parser has rejected. If a callback has refused it already, nothing happens."""
        self._refuse(MessageRefused(_MALFORMED))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._running is not None and not self._running.response_complete:
            _disconnect(self._running)  # the base class notifies only the newest request
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _framing_refusal(self) -> MessageRefused | None:
        named = [(name.lower(), value.strip(b" \t").lower()) for name, value in self.headers]
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            return HeadTooLarge(_TOO_LARGE)
        version, names = self.parser.get_http_version(), [name for name, _ in named]
        if version not in {"1.0", "1.1"} or names.count(b"host") > 1 or names.count(b"content-length") > 1:
            return MessageRefused(_MALFORMED)
        codings = [value for name, value in named if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or version != "1.1" or b"content-length" in names):
            return MessageRefused(_CODING)
        has_body = codings or any(value != b"0" for name, value in named if name == b"content-length")
        return MessageRefused(_UPGRADE) if has_body and self.parser.should_upgrade() else None

    def _stop(self, refusal: MessageRefused) -> None:
        """Refuse the message from within a callback of the parser, and stop parsing."""
        self._refuse(refusal)
        raise HttpParserError

    def _refuse(self, refusal: MessageRefused) -> None:
        if self._ignores_input:
            return
        self._ignores_input = True
        if self._body_open and not self._withdraw(self.cycle):
            self.transport.close()
            return
        waits = self._running is not None and not (self._running.response_complete or self._running.disconnected)
        self.cycle = self._refusal_cycle(refusal)
        if waits:
            self.pipeline.appendleft((self.cycle, self.app))
        else:
            self._start_asgi_task(self.cycle, self.app)

    def _withdraw(self, cycle: RequestResponseCycle) -> bool:
        """Cancel a request whose body is malformed; return False if its response has started."""
        if cycle.response_started:
            return False
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
        _disconnect(cycle)
        return True

    def _refusal_cycle(self, refusal: MessageRefused) -> RequestResponseCycle:
        scope: Any = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "method": "",
            "path": "",
            "raw_path": b"",
            "query_string": b"",
            "headers": [],
            "state": self.app_state.copy(),
        }
        refuse_message(scope, refusal)
        cycle = RequestResponseCycle(
            scope=scope,
            transport=self._lingering(),
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=False,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        cycle.message_event.set()
        return cycle

    def _lingering(self) -> asyncio.Transport:
        return cast("asyncio.Transport", _Lingering(self.transport, self.loop))


class _Lingering:
    """A transport that closes with a delay, while a request is still arriving.

    An immediate close would reset the connection, and the client could lose the response (RFC 9112, section 9.6).
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self.write, self.is_closing = transport.write, transport.is_closing

    def close(self) -> None:
        if self._transport.can_write_eof() and not self._transport.is_closing():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(LINGER_SECONDS, self._transport.close)


def _disconnect(cycle: RequestResponseCycle) -> None:
    cycle.disconnected = True
    cycle.message_event.set()
