"""Verification of bearer tokens: identity and role of the caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import jwt
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from app.errors import Forbidden, Unauthenticated

LONGEST_TOKEN: Final = 16_384
LEEWAY_SECONDS: Final = 30
_LONGEST_SUBJECT: Final = 255  # OpenID Connect Core, section 2
_REQUIRED: Final = ("iss", "sub", "aud", "exp", "iat")
_NO_ROLE: Final = "Sign in with exactly one of the roles admin, analyst, auditor and owner."


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: issuer, expected audience, and the claim that states the role.

    ``role_claim`` is a path of member names, as in ``realm_access.roles``; ``roles`` maps its values to roles of the
    service.
    """

    issuer: str
    audience: str
    role_claim: str
    roles: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whom the provider has authenticated."""

    issuer: str
    subject: str = field(repr=False)
    role: str
    expires_at: datetime


class Keys(Protocol):
    """A source of keys."""

    def find(self, key_id: str) -> PyJWK | None:
        """Find the key with this id; None if there is none."""


class TokenVerifier:
    """Verifies tokens of one provider."""

    def __init__(self, provider: Provider, keys: Keys) -> None:
        self._provider = provider
        self._keys = keys

    def verify(self, token: str, *, nonce: str | None = None) -> Identity:
        """Verify ``token`` and return the identity. ``nbf`` is checked if it is present.

        ``nonce``: for an ID token, that of its attempt to sign in. Then the authorised party must be the audience.

        Raises:
            Unauthenticated: the token is not a valid token of the provider for this audience.
            Forbidden: the token is valid and does not state exactly one role.
            DependencyUnavailable: the provider's keys cannot be fetched.
        """
        claims = self._claims(token)
        if nonce is not None and not self._is_of_attempt(claims, nonce):
            raise Unauthenticated
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
            raise Unauthenticated
        return Identity(self._provider.issuer, subject, self._role(claims), _expiry(claims["exp"]))

    def _is_of_attempt(self, claims: Mapping[str, Any], nonce: str) -> bool:
        """Whether an ID token belongs to this attempt and client (Core, section 3.1.3.7)."""
        audience = claims["aud"]
        has_others = isinstance(audience, list) and set(audience) != {self._provider.audience}
        party = claims.get("azp", None if has_others else self._provider.audience)
        return claims.get("nonce") == nonce and party == self._provider.audience

    def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > LONGEST_TOKEN:
            raise Unauthenticated
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header)
            return dict(
                jwt.decode(
                    token,
                    key=key,
                    algorithms=[key.algorithm_name],
                    issuer=self._provider.issuer,
                    audience=self._provider.audience,
                    leeway=LEEWAY_SECONDS,
                    options={"require": list(_REQUIRED)},
                )
            )
        except (PyJWTError, ValueError, TypeError, RecursionError):
            raise Unauthenticated from None

    def _key(self, header: Mapping[str, Any]) -> PyJWK:
        """Find the key that the header names.

        The key's algorithm is used, and the header must state the same one (algorithm confusion).
        """
        name = header.get("kid")
        key = self._keys.find(name) if isinstance(name, str) and "crit" not in header else None
        if key is None or header.get("alg") != key.algorithm_name:
            raise Unauthenticated
        return key

    def _role(self, claims: Mapping[str, Any]) -> str:
        value: Any = claims
        for name in self._provider.role_claim.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        named = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        of_provider = self._provider.roles
        roles = {of_provider[name] for name in named if isinstance(name, str) and name in of_provider}
        if len(roles) != 1:
            raise Forbidden(_NO_ROLE)
        return roles.pop()


def _expiry(seconds: float) -> datetime:
    """Return the expiry of a valid token. A time after the last date becomes the last date."""
    try:
        return datetime.fromtimestamp(int(seconds) + LEEWAY_SECONDS, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)
