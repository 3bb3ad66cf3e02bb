"""Digest fields of RFC 9530: ``Content-Digest`` of requests, ``Repr-Digest`` of responses."""

import base64
import binascii
import re

from app.errors import InvalidRequest

_MEMBER = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*", re.ASCII)


def sha256_of_header(header: str) -> bytes:
    """The SHA-256 digest (32 bytes) that a ``Content-Digest`` header names among its algorithms.

    Raises:
        InvalidRequest: for another form, and where no SHA-256 is among them.
    """
    return _sha256("", "The header Content-Digest", header)


def sha256_of_member(pointer: str, value: str) -> bytes:
    """The same for a body's member of the same form."""
    return _sha256(pointer, "A digest", value)


def _sha256(pointer: str, what: str, header: str) -> bytes:
    bad = f"{what} has the form 'sha-256=:<base64 of 32 bytes>:'."
    matches = [_MEMBER.fullmatch(member) for member in header.split(",")]
    found = {match[1]: match[2] for match in matches if match is not None}
    try:
        digest = base64.b64decode(found["sha-256"], validate=True)
    except (KeyError, binascii.Error):
        raise InvalidRequest.at(pointer, bad) from None
    if None in matches or len(digest) != 32:
        raise InvalidRequest.at(pointer, bad)
    return digest


def digest_header(sha256: bytes) -> str:
    """The field value for a SHA-256 digest of 32 bytes."""
    return f"sha-256=:{base64.b64encode(sha256).decode()}:"
