"""Digest fields of RFC 9530: ``sha-256=:base64:``."""

import base64
import hashlib
from collections.abc import Iterable


def digest_chunks(chunks: Iterable[bytes]) -> str:
    """The SHA-256 field value of a body that comes in chunks."""
    state = hashlib.sha256()
    for chunk in chunks:
        state.update(chunk)
    return f"sha-256=:{base64.b64encode(state.digest()).decode()}:"


def digest_bytes(content: bytes) -> str:
    """The SHA-256 field value of a body."""
    return digest_chunks((content,))


def find_sha256_member(header: str) -> str | None:
    """The ``sha-256`` member of a digest field that may list several algorithms."""
    members = (member.strip() for member in header.split(","))
    return next((member for member in members if member.startswith("sha-256=:")), None)
