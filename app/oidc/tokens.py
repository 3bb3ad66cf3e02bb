"""Bearer tokens: who they say is calling, and as what, once everything about them has been checked."""

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
_NO_ROLE: Final = "This call needs a sign-in with exactly one of the roles admin, analyst, auditor and owner."


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose tokens count, for whom they must be meant, and where they say what the caller may be.

    ``role_claim`` is a path of member names, as in ``realm_access.roles``; ``roles`` maps its values to ours.
    """

    issuer: str
    audience: str
    role_claim: str
    roles: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller whom the provider vouches for."""

    issuer: str
    subject: str = field(repr=False)
    role: str
    expires_at: datetime


class Keys(Protocol):
    """Where keys come from."""

    def find(self, key_id: str) -> PyJWK | None:
        """The key of this id, if there is one."""


class TokenVerifier:
    """Verifies tokens of one provider."""

    def __init__(self, provider: Provider, keys: Keys) -> None:
        self._provider = provider
        self._keys = keys

    def verify(self, token: str) -> Identity:
        """The identity behind ``token``. ``nbf`` counts where it is given; many providers leave it out.

        Raises:
            Unauthenticated: for anything that is not a valid token of the provider for us, all alike.
            Forbidden: for a valid token without exactly one of our roles.
            DependencyUnavailable: the provider's keys cannot be had.
        """
        claims = self._claims(token)
        subject = claims["sub"]
        if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
            raise Unauthenticated
        return Identity(self._provider.issuer, subject, self._role(claims), _expiry(claims["exp"]))

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
        """The key that the header names; its own algorithm decides, never the token's word alone."""
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
        known = {self._provider.roles[name] for name in named if isinstance(name, str) and name in self._provider.roles}
        if len(known) != 1:
            raise Forbidden(_NO_ROLE)
        return known.pop()


def _expiry(seconds: float) -> datetime:
    """When a token ends that was just found valid; a time beyond the calendar ends with it."""
    try:
        return datetime.fromtimestamp(int(seconds) + LEEWAY_SECONDS, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.max.replace(tzinfo=UTC)
