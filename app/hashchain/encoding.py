"""Canonical JSON (RFC 8785) and SHA-256 of it."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any

import rfc8785

_EXACT = 2**53 - 1
_PLAIN = 1e-4
"""From this value on, Python writes fractions as ECMAScript does: without exponent, in the fewest digits."""


class Written(str):
    """A canonical form that becomes part of a larger one unchanged."""

    __slots__ = ()


def write(document: Any) -> Written:
    """The canonical form, for use in several larger documents.

    Raises:
        rfc8785.CanonicalizationError: JSON cannot express the document.
    """
    return Written(canonicalise(document).decode())


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, in hexadecimal.

    Raises:
        rfc8785.CanonicalizationError: JSON cannot express the document, for example NaN.
    """
    return digest_form(canonicalise(dict(document)))


def digest_form(form: bytes) -> str:
    """SHA-256 of a canonical form, in hexadecimal."""
    return hashlib.sha256(form).hexdigest()


def canonicalise(document: Any) -> bytes:
    """Make the RFC 8785 form; equal to :func:`rfc8785.dumps`, and much faster.

    The ledger's documents are mostly long strings, which only need a scan. The library handles the rare types.

    Raises:
        rfc8785.CanonicalizationError: JSON cannot express the document.
    """
    try:
        return _text(document).encode()
    except UnicodeEncodeError:
        return rfc8785.dumps(document)


def _text(value: Any) -> str:
    if type(value) in {str, Written}:
        return value if type(value) is Written else encode_basestring(value)
    if type(value) is int and -_EXACT <= value <= _EXACT:
        return repr(value)
    if type(value) is float and _PLAIN <= abs(value) < _EXACT and not value.is_integer():
        return repr(value)
    if type(value) is dict and all(type(name) is str and name.isascii() for name in value):
        return "{" + ",".join([f"{encode_basestring(name)}:{_text(value[name])}" for name in sorted(value)]) + "}"
    if type(value) in {list, tuple}:
        return "[" + ",".join(map(_text, value)) + "]"
    return rfc8785.dumps(value).decode()


def format_instant(moment: datetime) -> str:
    """ISO 8601 in UTC to the microsecond, which every database stores exactly."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
