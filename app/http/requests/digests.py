"""Digest fields of RFC 9530: ``Content-Digest`` of requests, ``Repr-Digest`` of responses."""

import base64
import binascii
import re

from app.errors import InvalidRequest

_MEMBER = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*", re.ASCII)


def parse_sha256_header(header: str) -> bytes:
    """Parse the SHA-256 digest (32 bytes) of a ``Content-Digest`` header.

    Raises:
        InvalidRequest: the header is malformed, or has no SHA-256 digest.
    """
    return _sha256("", "The header Content-Digest", header)


def parse_sha256_member(pointer: str, value: str) -> bytes:
    """Parse the SHA-256 digest of a body's member in the header's form."""
    return _sha256(pointer, "A digest", value)


def _sha256(pointer: str, subject: str, header: str) -> bytes:
    remedy = f"{subject} has the form 'sha-256=:<base64 of 32 bytes>:'."
    matches = [_MEMBER.fullmatch(member) for member in header.split(",")]
    digests = {match[1]: match[2] for match in matches if match is not None}
    try:
        digest = base64.b64decode(digests["sha-256"], validate=True)
    except (KeyError, binascii.Error):
        raise InvalidRequest.at(pointer, remedy) from None
    if None in matches or len(digest) != 32:
        raise InvalidRequest.at(pointer, remedy)
    return digest


def digest_header(sha256: bytes) -> str:
    """Make the field value for a SHA-256 digest of 32 bytes."""
    return f"sha-256=:{base64.b64encode(sha256).decode()}:"
