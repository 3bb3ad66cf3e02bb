"""FastAPI dependencies that identify the caller and check the role."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.auth import repository
from app.auth.identities import find_or_create
from app.auth.secrets import START
from app.auth.service import Keys, note_use
from app.context import note_actor
from app.db import now
from app.errors import Forbidden, Unauthenticated
from app.services import Services, Shared

_bearer = HTTPBearer(
    auto_error=False,
    bearerFormat="cv_…",
    description="An API key, or a token of the OpenID Connect provider if one is configured.",
)
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


@dataclass(frozen=True, slots=True)
class Caller:
    """The key behind a request; ``role`` is one of admin, owner, analyst, auditor."""

    id: str
    role: str
    name: str
    expires_at: datetime | None = None
    """Time at which the credential that was sent expires."""


def find_caller(request: Request, services: Shared, credentials: Credentials) -> Caller | None:
    """Identify the caller; None if no credential was sent.

    Raises:
        Unauthenticated: the credential is not valid.
        RateLimited: too many requests of the key, or too many failed sign-ins of the address.
    """
    if credentials is None:
        return None
    rates = services.rates
    try:
        caller = identify(services, credentials.credentials)
    except Unauthenticated:
        if rates is not None:
            rates.failed_sign_in(request.scope)
        raise
    if rates is not None:
        request.state.response_headers = rates.request(caller.id)
    return caller


def identify(services: Services, text: str) -> Caller:
    """Identify the caller of an API key or a token.

    Raises:
        Unauthenticated: it is not valid.
    """
    keys, tokens = Keys(services.identity_key), services.tokens
    if tokens is not None and not text.startswith(START):
        identity = tokens.verify(text)
        key = find_or_create(services.database, services.identity_key, identity)
        role: str = identity.role
        expires_at: datetime | None = identity.expires_at
        if key.role != role:
            services.soon(f"role of {key.id}", partial(repository.note_role, key_id=key.id, role=role))
    else:
        with services.database.read() as session:
            key = keys.authenticate(session, text)
        role, expires_at = key.role, key.expires_at
    note_actor(key.id)
    if (write := note_use(key, now())) is not None:
        services.soon(f"use of {key.id}", write)
    return Caller(key.id, role, key.name, expires_at)


def require_caller(caller: "MaybeCaller") -> Caller:
    """Require a caller of any role.

    Raises:
        Unauthenticated: no credential was sent.
    """
    if caller is None:
        raise Unauthenticated
    return caller


MaybeCaller = Annotated[Caller | None, Depends(find_caller)]
AnyCaller = Annotated[Caller, Depends(require_caller)]


class RoleCheck:
    """A dependency that returns the caller if it has one of the ``roles``."""

    def __init__(self, *roles: str) -> None:
        self.roles = roles

    def __call__(self, caller: AnyCaller) -> Caller:
        """Return the caller.

        Raises:
            Forbidden: its role is another one.
        """
        if caller.role not in self.roles:
            raise Forbidden.to(caller.role, self.roles)
        return caller


Admin = Annotated[Caller, Depends(RoleCheck("admin"))]
Owner = Annotated[Caller, Depends(RoleCheck("owner"))]
