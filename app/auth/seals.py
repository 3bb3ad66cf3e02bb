"""Seals of callers' rows: whoever writes to the database alone can neither add a caller nor change what one may do.

A seal is a MAC under the identity key, which lies outside of the database. It covers all that decides who calls and as
what: id, source, role, prefix, the secret's hash and the expiry. A row without a valid seal is nobody's. To revoke
a key removes its seal, so that clearing ``revoked_at`` brings no key back. A seal does not protect against a copy: a
revoked row that is replaced by an older copy of itself, with its seal, works again.
"""

import hmac
import json
from datetime import UTC, datetime
from typing import Final

from app.auth.models import ApiKey

_PURPOSE: Final = b"corevault.caller\0"


def seal_of(identity_key: bytes, key: ApiKey) -> str:
    """HMAC-SHA-256 of the row, in hex. Roles of who signs in elsewhere come from tokens, so they are left out."""
    role = key.role if key.source == "key" else ""
    expires_at = None if key.expires_at is None else _utc(key.expires_at).isoformat()
    stated = json.dumps([key.id, key.source, role, key.prefix, key.secret_hash, expires_at], separators=(",", ":"))
    return hmac.digest(identity_key, _PURPOSE + stated.encode(), "sha256").hex()


def is_sealed(identity_key: bytes, key: ApiKey) -> bool:
    """Whether the service itself wrote the row as it is."""
    return key.seal is not None and hmac.compare_digest(key.seal, seal_of(identity_key, key))


def _utc(at: datetime) -> datetime:
    """The instant; a database driver without time zones reads UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
