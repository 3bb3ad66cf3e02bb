"""Sign-in at the OpenID Connect provider: the way there, and the way back.

A cookie binds an attempt to the browser. State, nonce and PKCE verifier are keyed hashes of the cookie's value. So the
server stores nothing, and only a holder of the cookie and of the server's key can make them.
"""

import base64
import hmac
import re
import secrets
from time import time
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Query, Request
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.auth import repository, sign_ins
from app.auth.identities import find_or_create
from app.auth.service import check_still_valid
from app.context import note_actor, note_refusal
from app.dashboard.forms import Mistakes
from app.dashboard.pages.sign_in import choose_target, show_sign_in
from app.dashboard.problem_pages import LONGEST_TARGET
from app.dashboard.rendering import PREFIX, find_origin, render
from app.dashboard.routing import OpenRoute, make_page_router
from app.dashboard.visitors import MaybeVisitor, set_cookie, uses_https
from app.errors import CorevaultError, Forbidden, NotFound, Unauthenticated
from app.http.errors.problems import find_status
from app.services import Services, Shared

if TYPE_CHECKING:
    from app.oidc import Attempt, CodeFlow, Identity

SECONDS: Final = 600
"""Time for a person to sign in at the provider."""
CALLBACK: Final = f"{PREFIX}/sign-in/callback"
SECURE_COOKIE: Final = "__Host-corevault-attempt"
PLAIN_COOKIE: Final = "corevault-attempt"
_FORM: Final = re.compile(r"([A-Za-z0-9_-]{43})\.([0-9]{1,12})\.([A-Za-z0-9_-]{0,3000})", re.ASCII)
_NOT_SET: Final = "This server has no sign-in service. Sign in with an API key."
_AGAIN: Final = "The sign-in was not completed here, or took too long. Start it again on this page."
_REFUSED: Final = "The sign-in service did not confirm the sign-in. Start it again on this page."
router, way_back = make_page_router(), make_page_router(OpenRoute)


@router.get("/sign-in/provider")
def begin(
    request: Request,
    services: Shared,
    visitor: MaybeVisitor,
    wanted: Annotated[str, Query(alias="next", max_length=LONGEST_TARGET)] = PREFIX,
) -> Response:
    """Send the browser to the provider."""
    if visitor is not None:
        return RedirectResponse(choose_target(wanted), 303)
    flow = _require_flow(services)
    target = base64.urlsafe_b64encode(choose_target(wanted).encode()).rstrip(b"=").decode()
    cookie = f"{secrets.token_urlsafe(32)}.{int(time())}.{target}"
    response = RedirectResponse(flow.make_address(_make_attempt(request, services, flow, cookie)), 303)
    _set_attempt(response, request, services, cookie)
    return response


@way_back.get("/sign-in/callback")
def finish(request: Request, services: Shared) -> Response:
    """Redeem the provider's code for a session.

    The answer is a page that leads on by itself. A redirect would belong to the provider's navigation. Then browsers
    would not send the session's strict cookie.
    """
    flow, sent = _require_flow(services), request.query_params
    cookie = request.cookies.get(_name_cookie(request, services), "")
    found = _FORM.fullmatch(cookie)
    wanted = PREFIX if found is None else choose_target(_decode(found[3]))
    try:
        attempt = _check_attempt(request, services, cookie, sent.get("state", ""))
    except Unauthenticated as refusal:  # the attempt of this browser, if there is one, may still end well
        return _refuse(request, services, refusal, wanted)
    try:
        if not _is_success(sent, flow.issuer):
            raise Unauthenticated(_REFUSED)
        value = _create_session(services, flow.redeem(sent["code"], attempt))
    except (Unauthenticated, Forbidden) as refusal:
        response = _refuse(request, services, refusal, wanted)
    else:
        response = render(request, "signed_in", None, wanted=wanted)
        set_cookie(response, request, services, value)
    response.delete_cookie(**_describe_cookie(request, services))
    return response


def _is_success(sent: QueryParams, issuer: str) -> bool:
    """Whether the provider answers with one code. ``iss`` is checked if it is there (RFC 9207)."""
    is_single = all(len(sent.getlist(name)) == 1 for name in ("code", "state"))
    return is_single and "error" not in sent and sent.getlist("iss") in ([], [issuer])


def _require_flow(services: Services) -> "CodeFlow":
    if services.code_flow is None:
        raise NotFound(_NOT_SET)
    return services.code_flow


def _make_attempt(request: Request, services: Services, flow: "CodeFlow", cookie: str) -> "Attempt":
    def derive(purpose: str) -> str:
        message = f"corevault.provider_sign_in.{purpose}\0{cookie}".encode()
        return base64.urlsafe_b64encode(hmac.digest(services.identity_key, message, "sha256")).rstrip(b"=").decode()

    return flow.make_attempt(f"{find_origin(request)}{CALLBACK}", derive)


def _check_attempt(request: Request, services: Services, cookie: str, state: str) -> "Attempt":
    """Return the attempt of this browser that the answer belongs to.

    Raises:
        Unauthenticated: there is none, or it is too old.
    """
    found = _FORM.fullmatch(cookie)
    attempt = _make_attempt(request, services, _require_flow(services), cookie)
    is_of_attempt = hmac.compare_digest(attempt.state.encode(), state.encode())
    if found is None or not is_of_attempt or not 0 <= time() - int(found[2]) <= SECONDS:
        raise Unauthenticated(_AGAIN)
    return attempt


def _create_session(services: Services, identity: "Identity") -> str:
    """Create a session of the caller with its token's role; return the cookie's value."""
    caller = find_or_create(services.database, services.identity_key, identity)
    note_actor(caller.id)
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, None)
        key = repository.find_unrevoked(tx, caller.id)
        if key is None:
            raise Unauthenticated
        if key.role != identity.role:
            repository.note_role(tx, key.id, identity.role)
        _, value = sign_ins.create(tx, services.identity_key, key, identity.role)
        record(tx, key.id)
    return value


def _refuse(request: Request, services: Services, refusal: CorevaultError, wanted: str) -> Response:
    """Show the page of the sign-in with the reason. No text of the provider is shown."""
    if services.rates is not None:
        services.rates.failed_sign_in(request.scope)
    note_refusal(refusal.code)
    words = refusal.detail if isinstance(refusal, Forbidden) or refusal.detail in {_AGAIN, _REFUSED} else _REFUSED
    return show_sign_in(request, services, wanted, Mistakes({"": words}), status=find_status(refusal))


def _decode(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except ValueError:
        return ""


def _name_cookie(request: Request, services: Services) -> str:
    return SECURE_COOKIE if uses_https(request, services) else PLAIN_COOKIE


def _set_attempt(response: Response, request: Request, services: Services, value: str) -> None:
    """Give the browser the cookie of the attempt. It is lax: the way back starts at the provider's page."""
    response.set_cookie(value=value, max_age=SECONDS, **_describe_cookie(request, services))


def _describe_cookie(request: Request, services: Services) -> dict[str, Any]:
    secure = uses_https(request, services)
    return {"key": _name_cookie(request, services), "path": "/", "secure": secure, "httponly": True, "samesite": "lax"}


router.routes.extend(way_back.routes)
