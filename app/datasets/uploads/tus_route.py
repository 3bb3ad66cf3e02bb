"""Routes that follow the tus protocol if the client sends Tus-Resumable."""

import json
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Scope

from app.context import get_current
from app.datasets.uploads import tus
from app.errors import CorevaultError
from app.http.requests.routing import Handler, Route

_OVERRIDABLE: Final = frozenset({"PATCH", "DELETE"})


class TusRoute(Route):
    """A route that checks the version of tus and adds Tus-Resumable to every answer.

    A creation request of tus has headers and no body. It is handled as a request whose JSON body has the same content.
    So validation, errors and idempotency are the same for all clients.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the method in X-HTTP-Method-Override, if a tus client sends one."""
        method = _override_method(scope)
        if method is None:
            return super().matches(scope)
        match, child_scope = super().matches({**scope, "method": method})
        return match, {**child_scope, "method": method} if match is Match.FULL else child_scope

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()
        has_body_model = self.body_field is not None

        async def follow_protocol(request: Request) -> Response:
            if (context := get_current()) is not None and context.method == "POST":
                context.method = request.method
            try:
                if request.method != "OPTIONS":
                    tus.check_request(request.headers)
                return await handle(_convert_creation(request) if has_body_model else request)
            finally:  # the rate limits replace these headers while the request is handled
                headers = getattr(request.state, "response_headers", {})
                request.state.response_headers = {**headers, "Tus-Resumable": tus.VERSION}

        return follow_protocol


def _override_method(scope: Scope) -> str | None:
    """Read the method that replaces POST, from clients that cannot send PATCH or DELETE."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    headers = Headers(scope=scope)
    method = headers.get("x-http-method-override", "")
    return method if tus.is_tus(headers) and method in _OVERRIDABLE else None


def _convert_creation(request: Request) -> Request:
    """Give a creation request of tus its JSON body; any other request is returned unchanged.

    A refusal of the headers is stored where refusals of bodies are, so that authentication comes first.
    """
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body or not tus.is_tus(request.headers):
        return request
    try:
        body = json.dumps(tus.parse_creation(request.headers)).encode()
    except CorevaultError as error:
        request.state.unreadable_body = error
        return request

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
    return Request({**request.scope, "headers": [*headers, (b"content-type", b"application/json")]}, receive)
