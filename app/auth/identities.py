"""Callers who sign in elsewhere: each gets an id like a key's, so that datasets are owned by and shared with them too.

Issuer and subject are kept as a keyed hash: the table says nothing about who it is. The row is sealed like a key's, or
whoever writes to the database could give one caller the id of another.
"""

import hmac
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import IntegrityError

from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import is_sealed, seal_of
from app.db import Database, ReadSession, new_id, now
from app.errors import Unauthenticated

if TYPE_CHECKING:
    from app.oidc import Identity

_PURPOSE: Final = b"corevault.identity\0"


def find_or_create(database: Database, identity_key: bytes, identity: "Identity") -> ApiKey:
    """The caller's row, made when it is met for the first time.

    Raises:
        Unauthenticated: the caller was revoked here, or somebody else wrote the row.
    """
    digest = _digest(identity_key, identity)
    with database.read() as session:
        known = repository.by_identity(session, digest)
    if known is None:
        known = _first_met(database, identity_key, digest, identity.role)
    if known.revoked_at is not None or not is_sealed(identity_key, known):
        raise Unauthenticated
    return known


def _first_met(database: Database, identity_key: bytes, digest: str, role: str) -> ApiKey:
    try:
        with database.write() as tx:
            tx.add(row := _row(identity_key, digest, role))
            tx.flush()
            tx.expunge(row)
            return row
    except IntegrityError:  # another request of the same caller was faster
        with database.read() as session:
            return _find(session, digest)


def _find(session: ReadSession, digest: str) -> ApiKey:
    known = repository.by_identity(session, digest)
    assert known is not None
    return known


def _row(identity_key: bytes, digest: str, role: str) -> ApiKey:
    name = f"sign-in {digest[:8]}"
    row = ApiKey(id=new_id("key"), name=name, role=role, source="oidc", secret_hash=digest, created_at=now())
    row.seal = seal_of(identity_key, row)
    return row


def _digest(identity_key: bytes, identity: "Identity") -> str:
    issuer, subject = (text.encode() for text in (identity.issuer, identity.subject))
    stated = _PURPOSE + len(issuer).to_bytes(4, "big") + issuer + subject
    return hmac.digest(identity_key, stated, "sha256").hex()
