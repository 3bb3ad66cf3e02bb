"""ASGI middleware for HEAD, OPTIONS, and CORS on public reads of releases."""

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import MethodNotAllowed
from app.http.errors.problems import get_request_id, make_response
from app.http.requests.routing import find_matching, find_methods

PUBLIC_READS: Final = "/v1/releases"
_EXPOSED: Final = "Accept-Ranges, Content-Range, ETag, Repr-Digest, X-Request-Id"
_PREFLIGHT: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Accept, If-None-Match, If-Range, Range",
    "Access-Control-Max-Age": "86400",
}


class HeadOptionsCors:
    """Answers OPTIONS, serves HEAD from GET, and adds CORS headers to public reads.

    A HEAD request is passed to the application unchanged if a route declares HEAD.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        declared = method in {"HEAD", "OPTIONS"} and _declares(self._routes, path, method)
        if method == "OPTIONS" and not declared and (methods := find_methods(self._routes, path)):
            await _options(methods, path)(scope, receive, send)
            return
        readable = is_public_read(path) and method in {"GET", "HEAD"}
        send = _add_cors(send, "authorization" in Headers(scope=scope)) if readable else send
        if method == "HEAD" and not declared:
            inner = dict(scope, method="GET")  # a copy: the server itself goes by the method that was sent
            await self._app(inner, receive, _without_body(send))
            scope["route"] = inner.get("route")
        else:
            await self._app(scope, receive, send)


def is_public_read(path: str) -> bool:
    return path == PUBLIC_READS or path.startswith(f"{PUBLIC_READS}/")


async def answer_method_not_allowed(request: Request, _: Exception) -> JSONResponse:
    """Answer 405, with every method of the address. Several routes may share one address."""
    allowed = ", ".join(sorted(find_methods(request.app.routes, request.url.path) | {"OPTIONS"}))
    return make_response(MethodNotAllowed(), get_request_id(request), {"Allow": allowed})


def _options(methods: frozenset[str], path: str) -> Response:
    headers = {"Allow": ", ".join(sorted(methods | {"OPTIONS"}))}
    return Response(status_code=204, headers=headers | (_PREFLIGHT if is_public_read(path) else {}))


def _add_cors(send: Send, keyed: bool) -> Send:
    """Let any site read the response, unless it needed a key."""

    async def mark(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if not keyed or "public" in headers.get("Cache-Control", ""):
                headers["Access-Control-Allow-Origin"] = "*"
                headers["Access-Control-Expose-Headers"] = _EXPOSED
        await send(message)

    return mark


def _declares(routes: Sequence[BaseRoute], path: str, method: str) -> bool:
    """Whether some route was declared with that method; the API's own GET routes are not declared with HEAD."""
    return any(method in (route.methods or ()) for route in find_matching(routes, path))


def _without_body(send: Send) -> Send:
    async def headers_only(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return headers_only
