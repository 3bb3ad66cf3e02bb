"""Replies about API keys and verification keys."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from corevault.replies._decode import Reply


@dataclass(frozen=True, kw_only=True, repr=False)
class Me(Reply):
    """The id, name and role of the API key in use.

    >>> client.me().role
    'owner'
    """

    id: str
    name: str
    role: str


@dataclass(frozen=True, kw_only=True, repr=False)
class KeyName(Reply):
    """Id and name of the API key of an owner or a submitter.

    >>> str(KeyName(id="key_1", name="ana"))
    'ana'
    """

    id: str
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True, repr=False)
class ApiKey(Reply):
    """An API key. ``key`` is the secret, which only creation and rotation return. Its ``repr`` omits the secret.

    >>> admin.keys.create("fay", "analyst").name
    'fay'
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("id", "name", "role")

    id: str
    name: str
    role: str
    key: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class SigningKey(Reply):
    """A published Ed25519 verification key in base64 (``public_key``); ``use`` is ``release`` or ``ledger``.

    >>> next(key.algorithm for key in client.signing_keys() if key.use == "release")
    'ed25519'
    """

    SHOWN: ClassVar[tuple[str, ...]] = ("key_id", "use", "algorithm")

    key_id: str
    algorithm: str
    use: str
    public_key: str
