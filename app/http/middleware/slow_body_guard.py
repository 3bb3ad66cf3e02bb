"""A body that arrives too slowly is ended: it would hold a connection and a part of the vault for ever. Pure ASGI."""

import time
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import Fault, InvalidRequest

_TOO_SLOW = "The body arrived too slowly; nothing of it was kept. Send it again over a faster connection."


class TooSlow(InvalidRequest):
    """The connection ends with this answer: what is left of the body is not waited for."""

    def __init__(self) -> None:
        super().__init__(_TOO_SLOW, (Fault("", _TOO_SLOW),))
        self.headers = {"Connection": "close"}


@dataclass(frozen=True, slots=True)
class LeastRate:
    """At least ``bytes_per_second``, on average over ``seconds`` of waiting for the client."""

    bytes_per_second: int
    seconds: float


class BodyPace:
    """Counts the time spent waiting for a body, and what came in it; time that we take ourselves does not count."""

    def __init__(self, app: ASGIApp, least: LeastRate | None) -> None:
        self._app = app
        self._least = least

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._least is not None:
            receive = _Paced(receive, self._least)
        await self._app(scope, receive, send)


class _Paced:
    """One body on its way in. What comes after it (the end of the connection) may take its time."""

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
