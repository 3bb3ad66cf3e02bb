"""Bodies of the keys' endpoints."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.auth.models import ApiKey
from app.http.errors.validation_errors import ONE_LINE
from app.http.requests.bodies import Body

Role = Literal["admin", "owner", "analyst", "auditor"]
_ID = "key_01jd0000000000000000000000"


class NewKey(Body):
    """Names need not be unique."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "ward 7", "role": "analyst", "expires_at": "2030-01-31T12:00:00Z"}]}
    )

    name: Annotated[str, Field(min_length=1, max_length=200, pattern=ONE_LINE)]
    role: Role
    expires_at: AwareDatetime | None = None


class ListedKey(BaseModel):
    """A key without its secret."""

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
    name: str
    role: str
    source: Literal["key", "oidc"]
    prefix: str | None
    """The part of the secret that is none; null for who signs in elsewhere, and for keys of an old form.

    The latter must be rotated."""
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""

    @classmethod
    def of(cls, key: ApiKey) -> "ListedKey":
        return cls.model_validate(key, from_attributes=True)


class CreatedKey(BaseModel):
    """The only answer that carries a secret; a replay of it does not."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": _ID, "name": "ward 7", "role": "analyst", "key": f"cv_7q2m8c4vxk_{'0' * 43}"}],
            "required": ["id", "name", "role"],
        }
    )

    id: str
    name: str
    role: str
    key: str


class Me(BaseModel):
    """The caller's own key."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": _ID, "role": "analyst", "name": "ward 7"}]})

    id: str
    role: str
    name: str
