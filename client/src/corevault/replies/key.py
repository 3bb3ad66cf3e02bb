"""Replies about API keys and verification keys."""

from dataclasses import dataclass
from datetime import datetime

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True)
class Me(Reply):
    """The id, name and role of the API key in use."""

    id: str
    name: str
    role: str


@dataclass(frozen=True, kw_only=True)
class ApiKey(Reply):
    """An API key. ``key`` is the secret, which only creation and rotation return. Its ``repr`` omits the secret."""

    id: str
    name: str
    role: str
    key: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def __repr__(self) -> str:
        return f"ApiKey(id={self.id!r}, name={self.name!r}, role={self.role!r})"


@dataclass(frozen=True, kw_only=True)
class SigningKey(Reply):
    """A published Ed25519 verification key in base64 (``public_key``); ``use`` is ``release`` or ``ledger``."""

    key_id: str
    algorithm: str
    use: str
    public_key: str
