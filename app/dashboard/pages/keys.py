"""API keys, for administrators: the list, a new key, and revocation with a confirmation."""

import json
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from app.audit.journal import record
from app.auth import repository
from app.auth import service as auth
from app.auth.caller import Caller
from app.auth.schemas import CreatedKey, NewKey
from app.auth.service import Keys
from app.context import note_refusal, note_target
from app.dashboard.days import FORM, read_day
from app.dashboard.forms import NO_MISTAKES, NOTHING_TYPED, Form, Mistakes, SentForm
from app.dashboard.once_forms import draw_form_key, read_once
from app.dashboard.paging import read_page
from app.dashboard.rendering import PREFIX, Twin, render
from app.dashboard.routing import make_page_router
from app.dashboard.visitors import AdminVisitor
from app.dashboard.wording import ROLES
from app.errors import (
    IdempotencyConflict,
    IdempotencyInProgress,
    InvalidRequest,
    NotFound,
    StateConflict,
)
from app.http.errors.problems import find_status
from app.http.requests.bodies import validate
from app.http.requests.idempotency import Answer, IdempotentRequest, answer_once
from app.http.requests.pagination import PageRequest, make_page
from app.services import Services, Shared

ROWS: Final = 50
_REFUSALS: Final = (IdempotencyConflict, IdempotencyInProgress, InvalidRequest, StateConflict)
_FIELDS: Final = {"/name": "name", "/role": "role", "/expires_at": "expires_on"}
router = make_page_router()


@router.get("/keys")
def show_keys(
    request: Request, services: Shared, visitor: AdminVisitor, paging: Annotated[PageRequest, Depends(read_page(ROWS))]
) -> Response:
    """List the keys that were not revoked, above a form for another."""
    return _render(request, services, visitor, paging)


@router.post("/keys")
def create_key(request: Request, services: Shared, visitor: AdminVisitor, form: SentForm) -> Response:
    """Create a key. This answer is the only one that contains its secret."""
    mistakes, document = Mistakes(), _make_document(form)
    try:
        body = _validate(document)
        created = _create(
            services, visitor, read_once(services, form, "keys", json.dumps(document, sort_keys=True)), body
        )
    except _REFUSALS as refusal:
        for fault in refusal.faults if isinstance(refusal, InvalidRequest) else ():
            mistakes.add(_FIELDS.get(fault.pointer, ""), fault.message)
        if not mistakes:
            mistakes.add("", refusal.detail)
        note_refusal(refusal.code)
        first, status = PageRequest(ROWS, None), find_status(refusal)
        return _render(request, services, visitor, first, form=form, mistakes=mistakes, status=status)
    twins = (Twin("/v1/api-keys", "POST", body.model_dump_json(exclude_none=True)),)
    return render(request, "key_created", visitor, twins=twins, key=created, secret=created.get("key"))


@router.get("/keys/{key_id}/revoke")
def confirm_revocation(request: Request, services: Shared, visitor: AdminVisitor, key_id: str) -> Response:
    """Ask whether to revoke a key."""
    with services.database.read() as session:
        key = repository.find_unrevoked(session, key_id)
    if key is None:
        raise NotFound
    note_target(key.id)
    return render(
        request,
        "key_revoke",
        visitor,
        twins=(Twin(f"/v1/api-keys/{key.id}", "DELETE"),),
        key=key,
        is_own=key.id == visitor.id,
    )


@router.post("/keys/{key_id}/revoke")
def revoke_key(services: Shared, _: AdminVisitor, key_id: str, __: SentForm) -> Response:
    """Revoke a key permanently."""
    with services.database.write() as tx:
        Keys(services.identity_key).revoke(tx, key_id)
        record(tx)
    return RedirectResponse(f"{PREFIX}/keys", 303)


def _make_document(form: Form) -> dict[str, Any]:
    return {name: form.text(name) for name in ("name", "role", "expires_on")}


def _validate(document: dict[str, Any]) -> NewKey:
    """Validate the request as the API does. The last day of a key counts in full.

    Raises:
        InvalidRequest: with one fault for each wrong field.
    """
    stated = {name: value for name, value in document.items() if name != "expires_on"}
    try:
        day = read_day(document["expires_on"])
    except ValueError:
        raise InvalidRequest.at("/expires_at", FORM) from None
    if day is not None:
        stated["expires_at"] = (day + timedelta(days=1)).isoformat()
    body = validate(NewKey, json.dumps(stated).encode())
    assert isinstance(body, NewKey)
    return body


def _create(services: Services, visitor: Caller, request: IdempotentRequest, body: NewKey) -> dict[str, Any]:
    with services.database.write() as tx:

        def create() -> Answer:
            auth.check_room(tx, visitor.id, services.limits.keys)
            key, secret = Keys(services.identity_key).create(tx, body.name, body.role, body.expires_at)
            record(tx, key.id)
            return Answer.of(201, CreatedKey(id=key.id, name=key.name, role=key.role, key=secret))

        answer = answer_once(tx, visitor.id, request, create, omit=frozenset({"key"}))
    created: dict[str, Any] = json.loads(bytes(answer.body))
    return created


def _render(
    request: Request,
    services: Services,
    visitor: Caller,
    paging: PageRequest,
    *,
    form: Form = NOTHING_TYPED,
    mistakes: Mistakes = NO_MISTAKES,
    status: int = 200,
) -> Response:
    with services.database.read() as session:
        found = repository.list_newest(session, paging.limit + 1, paging.after_id("key"))
    page = make_page(found, paging, lambda key: key.id, lambda key: key)
    return render(
        request,
        "keys",
        visitor,
        status=status,
        twins=("/v1/api-keys",),
        rows=page.items,
        next_cursor=page.next_cursor,
        is_first=paging.after is None,
        typed={name: form.text(name) for name in ("name", "role", "expires_on")},
        roles=[("", "Choose a role"), *ROLES.items()],
        mistakes=mistakes,
        once=draw_form_key(),
    )
