"""Digest fields of RFC 9530."""

import base64
import hashlib

import pytest

from app.errors import InvalidRequest
from app.http.requests.digests import digest_header, parse_sha256_header

DIGEST = hashlib.sha256(b"rows").digest()
TEXT = base64.b64encode(DIGEST).decode()


@pytest.mark.parametrize(
    "header", [f"sha-256=:{TEXT}:", f" sha-256=:{TEXT}: ", f"sha-512=:AAAA:, sha-256=:{TEXT}:", digest_header(DIGEST)]
)
def test_the_sha_256_digest_is_parsed(header: str) -> None:
    assert parse_sha256_header(header) == DIGEST


@pytest.mark.parametrize(
    "header", ["", TEXT, f"sha-256={TEXT}", "sha-256=:AAAA:", f"sha-512=:{TEXT}:", f"sha-256=:{TEXT}:,", "sha-256=:*:"]
)
def test_a_malformed_digest_is_invalid(header: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_sha256_header(header)
