"""Seals of the rows of callers.

A writer to the database who does not have the identity key can neither add a caller nor change a caller's rights. A
seal is a MAC under the identity key, which is not in the database. It covers id, source, role, prefix, expiry and the
secret's hash. A row without a valid seal is not accepted. Revoking a key removes its seal, so clearing ``revoked_at``
does not restore the key.

A seal does not protect against copies: if a revoked row is replaced by an older copy with its seal, the key works
again.
"""

import hmac
import json
from datetime import UTC, datetime
from typing import Final

from app.auth.models import ApiKey

_PURPOSE: Final = b"corevault.caller\0"


def compute_seal(identity_key: bytes, key: ApiKey) -> str:
    """Compute the HMAC-SHA-256 of the row, in hex.

    The role of a caller who signs in elsewhere comes from the token, so it is left out.
    """
    role = key.role if key.source == "key" else ""
    expires_at = None if key.expires_at is None else _utc(key.expires_at).isoformat()
    stated = json.dumps([key.id, key.source, role, key.prefix, key.secret_hash, expires_at], separators=(",", ":"))
    return hmac.digest(identity_key, _PURPOSE + stated.encode(), "sha256").hex()


def is_sealed(identity_key: bytes, key: ApiKey) -> bool:
    """Return whether the row has the seal that the service gave it."""
    return key.seal is not None and hmac.compare_digest(key.seal, compute_seal(identity_key, key))


def _utc(at: datetime) -> datetime:
    """Convert to UTC; drivers without time zones return times in UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
