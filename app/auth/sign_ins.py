"""Sign-ins at the dashboard: the session behind a browser's cookie.

The cookie has the form ``<id>.<43 characters>``; the second part has 256 random bits. The row of the session has a
keyed hash of this part. The hash also covers the row's id, its API key, its end, and the hash of the key's secret. So
an attacker who can write to the database can neither give a session to another key nor prolong it. A session ends when
its key is revoked, expires or gets a new secret.

A caller who signs in with OpenID Connect has the role in the ID token. The cookie of such a session ends with
``.<role>``, and the hash covers the role. So neither the browser nor a writer to the database can change the role.
"""

import hmac
import json
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select, update

from app.auth import repository
from app.auth.models import ApiKey, SignIn
from app.auth.seals import is_sealed
from app.auth.service import take_turn
from app.db import ReadSession, Write, WriteSession, generate_id, now
from app.errors import Unauthenticated

IDLE: Final = timedelta(minutes=30)
"""A session ends after this time without use."""
LIFETIME: Final = timedelta(hours=12)
"""A session ends after this time in any case."""
MOST: Final = 20
"""Largest number of sessions of one key. The next sign-in ends the oldest."""
USE_NOTED_EVERY: Final = timedelta(minutes=1)
"""Least time between two writes of the last use of a session."""
_FORM = re.compile(r"(ses_[0-9a-z]{26})\.([A-Za-z0-9_-]{43})(?:\.(admin|owner|analyst|auditor))?", re.ASCII)
_PURPOSE: Final = b"corevault.sign_in\0"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A valid session and its key. ``ends_at`` is the end of the session or of the key, if that is earlier."""

    session: SignIn
    key: ApiKey
    role: str
    ends_at: datetime


def create(tx: WriteSession, identity_key: bytes, key: ApiKey, role: str | None = None) -> tuple[SignIn, str]:
    """Create a session of ``key``; return it with the value of its cookie.

    The value is not stored, so it cannot be read again. ``role`` is required for a caller who signed in with OpenID
    Connect, and None otherwise.
    """
    assert (role is not None) == (key.source == "oidc")
    take_turn(tx, key.id)
    at = now()
    tx.execute(delete(SignIn).where(SignIn.expires_at <= at))
    newest = select(SignIn.id).where(SignIn.key_id == key.id).order_by(SignIn.id.desc()).limit(MOST - 1)
    kept = tx.scalars(newest).all()
    tx.execute(delete(SignIn).where(SignIn.key_id == key.id, SignIn.id.not_in(kept)))
    token = secrets.token_urlsafe(32)
    row = SignIn(id=generate_id("ses"), key_id=key.id, created_at=at, last_used_at=at, expires_at=at + LIFETIME)
    row.token_hash = _hash(identity_key, row, key, token, role)
    tx.add(row)
    tx.flush()
    return row, f"{row.id}.{token}" if role is None else f"{row.id}.{token}.{role}"


def find(session: ReadSession, identity_key: bytes, cookie: str) -> SignedIn:
    """Find the session of a cookie.

    Raises:
        Unauthenticated: the session is unknown, has ended or was not used for :data:`IDLE`, or its key is not valid.
    """
    match = _FORM.fullmatch(cookie)
    row = None if match is None else session.get(SignIn, match[1])
    key = None if row is None else repository.find_unrevoked(session, row.key_id)
    if match is None or row is None or key is None or not is_sealed(identity_key, key):
        raise Unauthenticated
    role: str | None = match[3]
    if (role is not None) != (key.source == "oidc"):
        raise Unauthenticated
    if not hmac.compare_digest(row.token_hash, _hash(identity_key, row, key, match[2], role)):
        raise Unauthenticated
    ends_at = row.expires_at if key.expires_at is None else min(row.expires_at, key.expires_at)
    at = now()
    if ends_at <= at or at - row.last_used_at >= IDLE:
        raise Unauthenticated
    return SignedIn(row, key, key.role if role is None else role, ends_at)


def note_use(row: SignIn, at: datetime) -> Write | None:
    """Return the write that records the use of the session; None if a recent use is recorded."""
    if at - row.last_used_at < USE_NOTED_EVERY:
        return None
    later = update(SignIn).where(SignIn.id == row.id, SignIn.last_used_at < at).values(last_used_at=at)

    def write(tx: WriteSession) -> None:
        tx.execute(later)

    return write


def end(tx: WriteSession, session_id: str) -> None:
    """End a session."""
    tx.execute(delete(SignIn).where(SignIn.id == session_id))


def _hash(identity_key: bytes, row: SignIn, key: ApiKey, token: str, role: str | None) -> str:
    members = [row.id, key.id, key.secret_hash, row.expires_at.isoformat(), token, *([] if role is None else [role])]
    stated = json.dumps(members, separators=(",", ":"))
    return hmac.digest(identity_key, _PURPOSE + stated.encode(), "sha256").hex()
