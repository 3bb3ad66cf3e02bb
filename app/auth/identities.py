"""Callers who sign in with OpenID Connect.

Each caller has a row in the table of API keys, with an id of the same form. So these callers can also own datasets, and
datasets can be shared with them. The row has only a keyed hash of issuer and subject, so it does not identify the
person. It has a seal, as the row of an API key has. Without the seal, an attacker who can write to the database could
give one caller the id of another.
"""

import hmac
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import IntegrityError

from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import compute_seal, is_sealed
from app.db import Database, ReadSession, generate_id, now
from app.errors import Unauthenticated

if TYPE_CHECKING:
    from app.oidc import Identity

_PURPOSE: Final = b"corevault.identity\0"


def find_or_create(database: Database, identity_key: bytes, identity: "Identity") -> ApiKey:
    """Find the caller's row, or create it at the first sign-in.

    Raises:
        Unauthenticated: the caller was revoked, or the row has no valid seal.
    """
    digest = _digest(identity_key, identity)
    with database.read() as session:
        row = repository.find_by_identity(session, digest)
    if row is None:
        row = _create(database, identity_key, digest, identity.role)
    if row.revoked_at is not None or not is_sealed(identity_key, row):
        raise Unauthenticated
    return row


def _create(database: Database, identity_key: bytes, digest: str, role: str) -> ApiKey:
    try:
        with database.write() as tx:
            tx.add(row := _make_row(identity_key, digest, role))
            tx.flush()
            tx.expunge(row)
            return row
    except IntegrityError:  # a concurrent request of the same caller was faster
        with database.read() as session:
            return _find(session, digest)


def _find(session: ReadSession, digest: str) -> ApiKey:
    row = repository.find_by_identity(session, digest)
    assert row is not None
    return row


def _make_row(identity_key: bytes, digest: str, role: str) -> ApiKey:
    name = f"sign-in {digest[:8]}"
    row = ApiKey(id=generate_id("key"), name=name, role=role, source="oidc", secret_hash=digest, created_at=now())
    row.seal = compute_seal(identity_key, row)
    return row


def _digest(identity_key: bytes, identity: "Identity") -> str:
    issuer, subject = (text.encode() for text in (identity.issuer, identity.subject))
    message = _PURPOSE + len(issuer).to_bytes(4, "big") + issuer + subject
    return hmac.digest(identity_key, message, "sha256").hex()
