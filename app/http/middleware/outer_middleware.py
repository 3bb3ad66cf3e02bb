"""The outermost ASGI middleware.

It adds a request id to every response and reports every exchange to observers. An exception becomes a problem details
response (RFC 9457), unless the response has started already. Streams are not buffered.
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
from app.db import generate_id
from app.errors import CorevaultError, DependencyUnavailable, Internal, InvalidRequest, NotFound, UnsupportedMediaType
from app.http.errors.messages import find_message_refusal
from app.http.errors.problems import make_response
from app.http.middleware.addresses import AllowedHosts
from app.tracing import open_span

_WRONG_HOST: Final = (
    "The Host header does not name this server. The operator can allow the name with COREVAULT_ALLOWED_HOSTS."
)
_STOPPING: Final = "This server is stopping; send the request again."
_STOPPING_MIDWAY: Final = (
    "This server is stopping, and the outcome of the request is unknown. Send the request again with the same "
    "Idempotency-Key. If it had none, check first whether the request had an effect. A resumable upload continues at "
    "its offset."
)
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response, for logs, metrics and the audit log.

    It contains no body, header, query string or raw path.
    """

    request: RequestContext
    status: int
    seconds: float


class ResponseAborted(Exception):
    """The application failed after the response had started.

    The server closes the connection. The original exception was logged without its message, because the message may
    contain data. It is not chained.
    """


class OuterMiddleware:
    """The outermost middleware of the application."""

    def __init__(
        self,
        app: ASGIApp,
        observers: tuple[Callable[[Exchange], None], ...] = (),
        hosts: AllowedHosts | None = None,
    ) -> None:
        """If ``hosts`` is None, every Host header is allowed, as in tests."""
        self._app = app
        self._observers = observers
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = generate_id("req")
        scope.setdefault("state", {})["request_id"] = request_id
        request = RequestContext(request_id, context.normalise_method(scope["method"]))
        token = context.enter(request)
        started, status = time.perf_counter(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                headers.update(scope["state"].get("response_headers", {}))
            await send(message)

        try:
            with open_span("request") as traced:
                try:
                    await self._answer(scope, receive, send_with_id)
                except asyncio.CancelledError:  # the server stops, and its grace period is over
                    if status:
                        raise
                    await make_response(_stopping(request.method), request_id)(scope, receive, send_with_id)
                except Exception as error:  # noqa: BLE001  (every failure must be answered here)
                    log_failure(error, request_id)
                    if status:
                        raise ResponseAborted from None
                    await make_response(_convert(error), request_id)(scope, receive, send_with_id)
                finally:
                    _note_route(scope, request)
                    traced.name = request.action
                    traced.set_attributes(request_id=request_id, status=status, code=request.code)
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
            await make_response(refusal, scope["state"]["request_id"], headers)(scope, receive, send)

    def _refusal(self, scope: Scope) -> CorevaultError | None:
        """Return the refusal of a request before routing; None if there is none."""
        if (refusal := find_message_refusal(scope)) is not None:
            return refusal
        if self._hosts is not None and not self._hosts.admits(scope):
            return InvalidRequest.at("/header/host", _WRONG_HOST)
        if "\0" in scope["path"]:
            return NotFound()
        codings = ",".join(Headers(scope=scope).getlist("content-encoding"))
        if any(coding.strip().lower() not in {"", "identity"} for coding in codings.split(",")):
            return UnsupportedMediaType("Send the body without Content-Encoding.")
        return None


def _note_route(scope: Scope, request: RequestContext) -> None:
    """Note the path template of a route that was matched but did not run."""
    route = scope.get("route")
    if request.route == context.UNMATCHED and isinstance(route, APIRoute):
        request.route = route.path_format


def _stopping(method: str) -> CorevaultError:
    """Make the answer to a request that is interrupted because the server stops.

    The thread of the request continues for some time and may still commit. Therefore the answer to a write states
    that the outcome is unknown.
    """
    return DependencyUnavailable(_STOPPING if method in _READS else _STOPPING_MIDWAY)


def _convert(error: Exception) -> CorevaultError:
    """Convert an unexpected exception to an error with a code.

    If the database cannot be reached, is full or is locked, the client may try again later. Every other exception is a
    fault of the service.
    """
    return DependencyUnavailable() if isinstance(error, OperationalError | NoConnection) else Internal()


def log_failure(error: BaseException, request_id: str) -> None:
    """Log the class and the traceback of an unexpected exception.

    The message is not logged, because it may contain data.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
    structlog.get_logger().error("unexpected error", kind=type(error).__name__, where=where, request_id=request_id)
