"""Sign-in with an API key, and sign-out."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Query, Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.auth import repository, sign_ins
from app.auth.caller import Caller, identify
from app.auth.secrets import parse
from app.auth.service import check_still_valid
from app.context import note_refusal
from app.dashboard.forms import Mistakes, SentForm
from app.dashboard.problem_pages import LONGEST_TARGET, is_page
from app.dashboard.rendering import PREFIX, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import MaybeVisitor, delete_cookie, find_session, set_cookie
from app.errors import Unauthenticated
from app.services import Services, Shared

router = make_page_router()
_WRONG = "This key is not valid. Check that you copied all of it, and that it was not revoked and has not expired."


@router.get("/sign-in")
def show_form(
    request: Request,
    services: Shared,
    visitor: MaybeVisitor,
    wanted: Annotated[str, Query(alias="next", max_length=LONGEST_TARGET)] = PREFIX,
    ended: Annotated[str, Query(max_length=1)] = "",
) -> Response:
    """Show the form for the API key; ``ended=1``: a form was sent after the session had ended."""
    if visitor is not None:
        return RedirectResponse(choose_target(wanted), 303)
    return show_sign_in(request, services, choose_target(wanted), Mistakes(), has_ended=ended == "1")


@router.post("/sign-in")
def sign_in(request: Request, services: Shared, form: SentForm) -> Response:
    """Exchange an API key for a session. The key itself is neither stored nor shown again."""
    wanted = choose_target(form.text("next"))
    try:
        caller = _identify(services, form.text("key"))
    except Unauthenticated as refusal:
        if services.rates is not None:
            services.rates.failed_sign_in(request.scope)
        note_refusal(refusal.code)
        mistakes = Mistakes({"key": _WRONG})
        return show_sign_in(request, services, wanted, mistakes, status=401)
    if services.rates is not None:
        request.state.response_headers = services.rates.request(caller.id)
    response = RedirectResponse(wanted, 303)
    set_cookie(response, request, services, _create_session(services, caller))
    return response


@router.post("/sign-out")
def sign_out(request: Request, services: Shared, visitor: MaybeVisitor, _: SentForm) -> Response:
    """End the session."""
    found = None if visitor is None else find_session(request, services)
    if found is not None:
        with services.database.write() as tx:
            sign_ins.end(tx, found.session.id)
            record(tx, found.key.id)
    response = RedirectResponse(f"{PREFIX}/sign-in", 303)
    delete_cookie(response, request, services)
    return response


def show_sign_in(
    request: Request,
    services: Services,
    wanted: str,
    mistakes: Mistakes,
    *,
    status: int = 200,
    has_ended: bool = False,
) -> Response:
    """Show the page. The button of the provider is there if one is set."""
    provider = None if services.code_flow is None else urlsplit(services.code_flow.issuer).hostname
    return render(
        request,
        "sign_in",
        None,
        status=status,
        wanted=wanted,
        mistakes=mistakes,
        provider=provider,
        has_ended=has_ended,
    )


def _identify(services: Services, text: str) -> Caller:
    """Identify the caller of an API key. A token of another issuer ends too soon for a session."""
    if parse(text) is None:
        raise Unauthenticated
    return identify(services, text)


def _create_session(services: Services, caller: Caller) -> str:
    with services.database.write() as tx:
        check_still_valid(tx, caller.id, caller.expires_at)
        key = repository.find_unrevoked(tx, caller.id)
        if key is None:
            raise Unauthenticated
        _, cookie = sign_ins.create(tx, services.identity_key, key)
        record(tx, key.id)
        return cookie


def choose_target(wanted: str) -> str:
    """Return the page to open after the sign-in: ``wanted`` if it is a page of this server."""
    plain = wanted.isascii() and wanted.isprintable() and "\\" not in wanted and "//" not in wanted
    return wanted if plain and is_page(wanted.partition("?")[0]) else PREFIX
