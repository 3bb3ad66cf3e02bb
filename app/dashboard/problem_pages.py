"""ASGI middleware for the answers below ``/dashboard``: security headers, and problems as pages.

The application answers a problem as JSON, on every path. Here it becomes a page with the same status, code and words,
unless the request comes from a script, which asks for JSON.
"""

import json
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.auth.caller import Caller
from app.dashboard.policies import POLICY as POLICY
from app.dashboard.rendering import PREFIX, render
from app.http.errors.codes import MEDIA_TYPE
from app.http.errors.problems import set_retry_after

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
LONGEST_TARGET: Final = 2_000
"""Most characters of the address of a page to open after the sign-in."""
_KEPT: Final = ("x-request-id", "retry-after", "allow", "connection", "ratelimit", "ratelimit-policy")
"""Headers of a problem that its page has too."""


class ProblemPages:
    """Turns problem details into pages. It adds security headers to every answer below the dashboard."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        problem = _Problem()

        async def send_page(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS | _keep_policy(headers))
                headers.setdefault("Cache-Control", "no-store")
                set_retry_after(headers, message["status"])
                if headers.get("content-type") == MEDIA_TYPE and not asks_for_json(scope):
                    problem.start = message
                    return
            elif problem.start is not None:
                problem.body += message.get("body", b"")
                if not message.get("more_body", False):
                    await _answer(problem, scope)(scope, receive, send)
                return
            await send(message)

        await self._app(scope, receive, send_page)


class _Problem:
    """A problem of which the page is made, once its body is complete."""

    def __init__(self) -> None:
        self.start: Message | None = None
        self.body = b""


def is_page(path: str) -> bool:
    """Whether the path belongs to the dashboard."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def asks_for_json(scope: Scope) -> bool:
    """Whether the request asks for JSON, as scripts of the pages do. A browser that opens a page does not."""
    return "application/json" in Headers(scope=scope).get("accept", "")


def _keep_policy(headers: MutableHeaders) -> dict[str, str]:
    """Return the policy that a page states itself; empty if it states none."""
    policy = headers.get("content-security-policy")
    return {} if policy is None else {"Content-Security-Policy": policy}


def _answer(problem: _Problem, scope: Scope) -> Response:
    assert problem.start is not None
    request = Request(scope)
    headers, status = Headers(scope=problem.start), problem.start["status"]
    if status == 401:
        response: Response = RedirectResponse(f"{PREFIX}/sign-in?{_ask_to_sign_in(scope)}", 303)
    else:
        response = _render(request, _parse(problem.body), status, headers.get("retry-after"))
    response.headers.update({name: headers[name] for name in _KEPT if name in headers})
    response.headers.update(SECURITY_HEADERS | {"Cache-Control": "no-store"})
    if scope["method"] == "HEAD":
        response.body = b""
    return response


def _ask_to_sign_in(scope: Scope) -> str:
    """Make the query of the sign-in page. It names the wanted page, or reports that a form was not carried out."""
    if scope["method"] not in {"GET", "HEAD"}:
        return "ended=1"
    query = scope["query_string"].decode("latin-1")
    wanted = f"{scope['path']}?{query}" if query else scope["path"]
    return urlencode({"next": wanted if len(wanted) <= LONGEST_TARGET else scope["path"]})


def _render(request: Request, document: dict[str, Any], status: int, seconds: str | None) -> Response:
    visitor = getattr(request.state, "visitor", None)
    return render(
        request,
        "problem",
        visitor if isinstance(visitor, Caller) else None,
        status=status,
        title=document.get("title", "The service failed"),
        detail=document.get("detail", ""),
        seconds=seconds,
        code=document.get("code", "internal"),
        request_id=document.get("request_id", ""),
        faults=[each["message"] for each in document.get("errors", ()) if each.get("message")],
    )


def _parse(body: bytes) -> dict[str, Any]:
    """Parse the problem; the answer to a HEAD request has no body."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
