"""Digest fields of RFC 9530: ``Content-Digest`` of requests, ``Repr-Digest`` of responses."""

import base64
import binascii
import re

from app.errors import InvalidRequest

_MEMBER = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*", re.ASCII)
_BAD = "The header Content-Digest has the form 'sha-256=:<base64 of 32 bytes>:'."


def sha256_of_header(header: str) -> bytes:
    """The SHA-256 digest (32 bytes) that a ``Content-Digest`` header names among its algorithms.

    Raises:
        InvalidRequest: for another form, and where no SHA-256 is among them.
    """
    matches = [_MEMBER.fullmatch(member) for member in header.split(",")]
    found = {match[1]: match[2] for match in matches if match is not None}
    try:
        digest = base64.b64decode(found["sha-256"], validate=True)
    except (KeyError, binascii.Error):
        raise InvalidRequest.at("", _BAD) from None
    if None in matches or len(digest) != 32:
        raise InvalidRequest.at("", _BAD)
    return digest


def digest_header(sha256: bytes) -> str:
    """The field value for a SHA-256 digest of 32 bytes."""
    return f"sha-256=:{base64.b64encode(sha256).decode()}:"
