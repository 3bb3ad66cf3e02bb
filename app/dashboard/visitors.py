"""The visitor of a page: the caller behind the session cookie, with the same rights as with the API key."""

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.responses import Response

from app.auth import sign_ins
from app.auth.caller import Caller
from app.auth.models import SignIn
from app.auth.service import note_use
from app.context import note_actor
from app.db import now
from app.errors import Forbidden, Unauthenticated
from app.services import Services, Shared

SECURE_COOKIE: Final = "__Host-corevault-session"
PLAIN_COOKIE: Final = "corevault-session"
"""Name of the cookie over http. Browsers accept the prefix ``__Host-`` over https only."""
REFRESH_HEADER: Final = "corevault-refresh"
"""Header of requests that a page sends by itself. They do not prolong the session."""


def uses_https(request: Request, services: Services) -> bool:
    """Whether the browser uses https."""
    return services.behind_tls or request.url.scheme == "https"


def set_cookie(response: Response, request: Request, services: Services, value: str) -> None:
    """Give the browser the session's cookie. It ends with the browser's session."""
    secure = uses_https(request, services)
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    response.set_cookie(name, value, path="/", secure=secure, httponly=True, samesite="strict")


def delete_cookie(response: Response, request: Request, services: Services) -> None:
    """Let the browser delete the session's cookie."""
    secure = uses_https(request, services)
    name = SECURE_COOKIE if secure else PLAIN_COOKIE
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")


def find_session(request: Request, services: Services) -> sign_ins.SignedIn | None:
    """Find the session of the request's cookie; None if there is no valid one."""
    cookie = request.cookies.get(SECURE_COOKIE if uses_https(request, services) else PLAIN_COOKIE)
    if cookie is None:
        return None
    try:
        with services.database.read() as session:
            return sign_ins.find(session, services.identity_key, cookie)
    except Unauthenticated:
        return None


def find_visitor(request: Request, services: Shared) -> Caller | None:
    """Identify the visitor; None without a valid session.

    Raises:
        RateLimited: too many requests of the key. Requests of pages and of the API are counted together.
    """
    found = find_session(request, services)
    if found is None:
        return None
    key = found.key
    note_actor(key.id)
    if REFRESH_HEADER not in request.headers:
        _note_use(services, found)
    caller = Caller(key.id, found.role, key.name, found.ends_at)
    request.state.visitor = caller
    if services.rates is not None:
        request.state.response_headers = services.rates.request(caller.id)
    return caller


def _note_use(services: Services, found: sign_ins.SignedIn) -> None:
    at = now()
    row: SignIn = found.session
    if (write := sign_ins.note_use(row, at)) is not None:
        services.soon(f"use of {row.id}", write)
    if (write := note_use(found.key, at)) is not None:
        services.soon(f"use of {found.key.id}", write)


def require_visitor(visitor: "MaybeVisitor") -> Caller:
    """Require a visitor who is signed in.

    Raises:
        Unauthenticated: there is no valid session.
    """
    if visitor is None:
        raise Unauthenticated
    return visitor


def require(*roles: str) -> Callable[[Caller], Caller]:
    """Make a dependency that returns the visitor, or raises Forbidden for another role."""

    def check_role(visitor: Visitor) -> Caller:
        if visitor.role not in roles:
            raise Forbidden.to(visitor.role, roles)
        return visitor

    return check_role


MaybeVisitor = Annotated[Caller | None, Depends(find_visitor)]
Visitor = Annotated[Caller, Depends(require_visitor)]
AdminVisitor = Annotated[Caller, Depends(require("admin"))]
OverseerVisitor = Annotated[Caller, Depends(require("admin", "auditor"))]
OwnerVisitor = Annotated[Caller, Depends(require("owner"))]
RunnerVisitor = Annotated[Caller, Depends(require("analyst", "owner"))]
