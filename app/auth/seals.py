"""Seals of the rows of callers.

A seal is a message authentication code (MAC) of a row under the identity key, which is not in the database. It covers
id, source, role, prefix, expiry and the secret's hash. A row without a valid seal is not accepted. So a person who can
only write to the database can neither add a caller nor change a caller's rights. Revoking a key removes its seal, so
clearing ``revoked_at`` does not restore the key.

A seal does not protect against old copies: if an older copy of a revoked row is written back, with its seal, the key
works again.
"""

import hmac
import json
from datetime import UTC, datetime
from typing import Final

from app.auth.models import ApiKey

_PURPOSE: Final = b"corevault.caller\0"
"""Prefix of the sealed text, so that no other use of the identity key gives the same code."""


def compute_seal(identity_key: bytes, key: ApiKey) -> str:
    """Compute the HMAC-SHA-256 of the row, in hex.

    The role of a caller with a token of the OpenID Connect issuer is in the token, so it is left out.
    """
    role = key.role if key.source == "key" else ""
    expires_at = None if key.expires_at is None else _utc(key.expires_at).isoformat()
    sealed = json.dumps([key.id, key.source, role, key.prefix, key.secret_hash, expires_at], separators=(",", ":"))
    return hmac.digest(identity_key, _PURPOSE + sealed.encode(), "sha256").hex()


def is_sealed(identity_key: bytes, key: ApiKey) -> bool:
    """Return whether the row has the seal that the service gave it."""
    return key.seal is not None and hmac.compare_digest(key.seal, compute_seal(identity_key, key))


def _utc(at: datetime) -> datetime:
    """Convert to UTC; drivers without time zones return times in UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
