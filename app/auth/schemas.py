"""Request and response bodies of API keys."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from app.auth.models import ApiKey
from app.http.errors.validation_errors import ONE_LINE
from app.http.requests.bodies import Body, ResponseBody

Role = Literal["admin", "owner", "analyst", "auditor"]
_ID = "key_01jd0000000000000000000000"


class NewKey(Body):
    """An API key to create. Names need not be unique."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ward 7", "role": "analyst", "expires_at": "2030-01-31T12:00:00Z"}]}
    )

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=ONE_LINE)]
    """Name of the key, for people who read lists of keys."""
    role: Role
    """Role of the key: it decides which calls the key may make."""
    expires_at: AwareDatetime | None = None
    """Time from which the key is refused; null: it does not expire."""


class KeyReference(ResponseBody):
    """An API key as others see it: its id and its name."""

    id: str
    """Id of the key."""
    name: str
    """Name that was given when the key was created."""


class ListedKey(ResponseBody):
    """An API key without its secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": _ID,
                    "name": "ward 7",
                    "role": "analyst",
                    "source": "key",
                    "prefix": "cv_7q2m8c4vxk",
                    "created_at": "2029-01-31T12:00:00Z",
                    "expires_at": "2030-01-31T12:00:00Z",
                    "last_used_at": "2029-02-01T08:30:00Z",
                }
            ]
        }
    )

    id: str
    """Id of the key."""
    name: str
    """Name that was given when the key was created."""
    role: str
    """Role of the key; for a caller who signs in elsewhere, the role of the last token."""
    source: Literal["key", "oidc"]
    """`key`: an API key. `oidc`: a caller who signs in with OpenID Connect."""
    prefix: str | None
    """Public first part of the secret, which identifies the key.

    Null for callers who sign in elsewhere, and for keys of an older form, which must be rotated.
    """
    created_at: datetime
    """Time of creation."""
    expires_at: datetime | None
    """Time from which the key is refused; null: it does not expire."""
    last_used_at: datetime | None
    """Time of the last use, to the minute; null: never used."""

    @classmethod
    def of(cls, key: ApiKey) -> "ListedKey":
        return cls.model_validate(key, from_attributes=True)


class CreatedKey(ResponseBody):
    """A new API key with its secret. No other response contains the secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": _ID, "name": "ward 7", "role": "analyst", "key": f"cv_7q2m8c4vxk_{'0' * 43}"}],
            "required": ["id", "name", "role"],
        }
    )

    id: str
    """Id of the key."""
    name: str
    """Name of the key."""
    role: str
    """Role of the key."""
    key: str
    """The secret, to be sent as `Authorization: Bearer <key>`.

    It is absent from the response to a repeated request with the same Idempotency-Key.
    """


class Me(ResponseBody):
    """The caller: an API key, or a person who signs in with OpenID Connect."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": _ID, "role": "analyst", "name": "ward 7"}]})

    id: str
    """Id of the key."""
    role: str
    """Role of the key."""
    name: str
    """Name of the key."""
