"""The outermost layer: a request id on every response, no exception that escapes, one observation an exchange.

Pure ASGI, so that streams pass through it unbuffered.
"""

import asyncio
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from fastapi.routing import APIRoute
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import context
from app.context import RequestContext
from app.db import new_id
from app.errors import CorevaultError, DependencyUnavailable, Internal, InvalidRequest, NotFound, UnsupportedMediaType
from app.http.errors.messages import message_refusal
from app.http.errors.problems import problem
from app.http.middleware.addresses import AllowedHosts
from app.tracing import span

_WRONG_HOST: Final = (
    "This server does not go by the name in the Host header; its operator sets COREVAULT_ALLOWED_HOSTS."
)
_STOPPING: Final = "This server is stopping; ask again."
_STOPPING_MIDWAY: Final = (
    "This server is stopping, and did not wait to see whether it did this. Ask again under the same Idempotency-Key, "
    "or look first whether it happened; an upload in parts goes on where it is."
)
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """All that logs, metrics and the audit log may know of a request: no body, no header, no query, no raw path."""

    request: RequestContext
    status: int
    seconds: float


class ResponseAborted(Exception):
    """The response broke off; its cause was logged without its message, which may quote data."""


class Edge:
    """Wraps the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        observers: tuple[Callable[[Exchange], None], ...] = (),
        hosts: AllowedHosts | None = None,
    ) -> None:
        """``hosts`` None: whatever name this server is called by (in front of no browser, as in tests)."""
        self._app = app
        self._observers = observers
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = new_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        request = RequestContext(request_id, context.known_method(scope["method"]))
        token = context.enter(request)
        started, status = time.perf_counter(), 0

        async def stamped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers.update(scope["state"].get("response_headers", {}))
            await send(message)

        try:
            with span("request") as traced:
                try:
                    await self._answer(scope, receive, stamped)
                except asyncio.CancelledError:  # only a server that stops cancels, once its patience has ended
                    if status:
                        raise
                    await problem(_stopping(request.method), request_id)(scope, receive, stamped)
                except Exception as error:  # noqa: BLE001  (the edge is where every failure ends)
                    log_failure(error, request_id)
                    if status:
                        raise ResponseAborted from None
                    await problem(_blame(error), request_id)(scope, receive, stamped)
                finally:
                    _name(scope, request)
                    traced.name = request.action
                    traced.tell(request_id=request_id, status=status, code=request.code)
        finally:
            for observe in self._observers:
                observe(Exchange(request, status, time.perf_counter() - started))
            context.leave(token)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            headers = getattr(refusal, "headers", None)
            await problem(refusal, scope["state"]["request_id"], headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> CorevaultError | None:
        """What no route of ours ever accepts."""
        if (refusal := message_refusal(scope)) is not None:
            return refusal
        if self._hosts is not None and not self._hosts.admits(scope):
            return InvalidRequest.at("/header/host", _WRONG_HOST)
        if "\0" in scope["path"]:
            return NotFound()
        codings = ",".join(Headers(scope=scope).getlist("content-encoding"))
        if any(coding.strip().lower() not in {"", "identity"} for coding in codings.split(",")):
            return UnsupportedMediaType("Send the body without Content-Encoding.")
        return None


def _name(scope: Scope, request: RequestContext) -> None:
    """Give a request that was refused before its route was reached the template of it all the same."""
    route = scope.get("route")
    if request.route == context.UNMATCHED and isinstance(route, APIRoute):
        request.route = route.path_format


def _stopping(method: str) -> CorevaultError:
    """A thread that works for the request goes on for now, and may yet commit: nobody is told that nothing happened."""
    return DependencyUnavailable(_STOPPING if method in _READS else _STOPPING_MIDWAY)


def _blame(error: Exception) -> CorevaultError:
    """A database that is away, full or locked for too long is not a bug, and may be back soon."""
    return DependencyUnavailable() if isinstance(error, OperationalError | NoConnection) else Internal()


def log_failure(error: BaseException, request_id: str) -> None:
    """The kind of an unexpected error and where it arose; never its message."""
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    structlog.get_logger().error("unexpected error", kind=type(error).__name__, where=where, request_id=request_id)
