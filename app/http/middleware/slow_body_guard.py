"""ASGI middleware that ends request bodies that arrive too slowly (slowloris).

A slow body would hold a connection, and an open part of an upload, without end.
"""

import time
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import Fault, InvalidRequest

_TOO_SLOW = "The body arrived too slowly, so it was discarded. Send it again over a faster connection."


class TooSlow(InvalidRequest):
    """A body that is too slow. The connection ends with this answer, without the rest of the body."""

    def __init__(self) -> None:
        super().__init__(_TOO_SLOW, (Fault("", _TOO_SLOW),))
        self.headers = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class LeastRate:
    """The lowest accepted rate: an average over ``seconds`` of waiting for the client."""

    bytes_per_second: int
    seconds: float


class SlowBodyGuard:
    """Ends bodies that are slower than ``least``.

    Only time spent waiting for the client counts, not the time that the service takes.
    """

    def __init__(self, app: ASGIApp, least: LeastRate | None) -> None:
        self._app = app
        self._least = least

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._least is not None:
            receive = _GuardedReceive(receive, self._least)
        await self._app(scope, receive, send)


class _GuardedReceive:
    """Receives one body. Messages after it, as the end of the connection, have no time limit."""

    def __init__(self, receive: Receive, least: LeastRate) -> None:
        self._receive = receive
        self._least = least
        self._ended = False
        self._start_window()

    def _start_window(self) -> None:
        self._waited, self._received = 0.0, 0

    async def __call__(self) -> Message:
        if self._ended:
            return await self._receive()
        message = await self._next()
        self._received += len(message.get("body", b""))
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def _next(self) -> Message:
        while True:
            started = time.monotonic()
            with anyio.move_on_after(max(0.0, self._least.seconds - self._waited)):
                message = await self._receive()
                self._waited += time.monotonic() - started
                return message
            if self._received < self._least.bytes_per_second * self._least.seconds:
                raise TooSlow
            self._start_window()
