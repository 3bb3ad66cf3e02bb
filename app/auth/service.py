"""Rules of API keys: only the hash of a secret is kept, and someone can always administer."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from app.auth import repository
from app.auth.models import ApiKey
from app.context import seen
from app.db import ReadSession, WriteSession, new_id, now
from app.errors import InvalidRequest, NotFound, StateConflict, Unauthenticated

PREFIX: Final = "cv_"
_ENTROPY_BYTES: Final = 32
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)


def authenticate(session: ReadSession, secret: str) -> ApiKey:
    """The key that the secret belongs to.

    Raises:
        Unauthenticated: for an unknown, expired or revoked key, all alike.
    """
    if _FORM.fullmatch(secret) is None:
        raise Unauthenticated
    digest = _hash(secret)
    key = repository.by_hash(session, digest)
    if key is None or not hmac.compare_digest(key.secret_hash, digest) or not _usable(key, now()):
        raise Unauthenticated
    return key


def create(tx: WriteSession, name: str, role: str, expires_at: datetime | None = None) -> tuple[ApiKey, str]:
    """A new key and its secret, which nobody can read again.

    Raises:
        InvalidRequest: at ``/expires_at``, for a time that has passed.
    """
    at = now()
    if expires_at is not None and expires_at <= at:
        raise InvalidRequest.at("/expires_at", "Use a time in the future.")
    secret = _new_secret()
    key = ApiKey(
        id=new_id("key"),
        name=name,
        role=role,
        secret_hash=_hash(secret),
        created_at=at,
        expires_at=expires_at,
        revoked_at=None,
    )
    tx.add(key)
    tx.flush()
    return key, secret


def rotate(tx: WriteSession, key_id: str) -> tuple[ApiKey, str]:
    """A new secret for the same key; the old one ends with this transaction.

    Raises:
        NotFound: for an unknown or revoked key.
        StateConflict: for an expired one, which a new secret would not revive.
    """
    key = _found(tx, key_id)
    if not _usable(key, now()):
        raise StateConflict("This key has expired; create a new one.")
    secret = _new_secret()
    key.secret_hash = _hash(secret)
    tx.flush()
    return key, secret


def revoke(tx: WriteSession, key_id: str) -> None:
    """End a key for good; what it owns stays.

    Raises:
        NotFound: for an unknown or revoked key.
        StateConflict: for the last admin key that works.
    """
    at = now()
    admins = {key.id for key in repository.usable_admins(tx, at)}
    key = _found(tx, key_id)
    if admins == {key.id}:
        raise StateConflict("This is the last admin key that works; create another one first.")
    key.revoked_at = at
    tx.flush()


def unknown(session: ReadSession, key_ids: Sequence[str]) -> frozenset[str]:
    """Those of the ids that belong to no key (for datasets that are shared with keys)."""
    return frozenset(key_ids) - repository.known(session, key_ids)


def _found(tx: WriteSession, key_id: str) -> ApiKey:
    key = repository.by_id(tx, key_id)
    if key is None:
        raise NotFound
    seen(key.id)
    return key


def _usable(key: ApiKey, at: datetime) -> bool:
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > at)


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_ENTROPY_BYTES)


def _hash(secret: str) -> str:
    """SHA-256 without salt or stretching: the secret has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()
