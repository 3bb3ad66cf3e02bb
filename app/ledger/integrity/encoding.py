"""One way to write things down, so that a hash means the same everywhere: RFC 8785 canonical JSON and SHA-256."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

import rfc8785

_EXACT = 2**53 - 1
_PLAIN = 1e-4
"""From here on, Python writes fractions as ECMAScript does: without an exponent, in the fewest digits."""


class Written(str):
    """A canonical form, to be part of a larger one as it is."""

    __slots__ = ()


def write(document: Any) -> Written:
    """The canonical form, made once for all that contain it.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say.
    """
    return Written(canonical(document).decode())


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, in hexadecimal.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say, such as NaN.
    """
    return digest_of(canonical(dict(document)))


def digest_of(form: bytes) -> str:
    """SHA-256 of a canonical form, in hexadecimal."""
    return hashlib.sha256(form).hexdigest()


def canonical(document: Any) -> bytes:
    """RFC 8785's form of ``document``, as :func:`rfc8785.dumps` has it, in a fraction of the time.

    Most of what the ledger writes down is long strings, which need a scan only; what is rare is left to the library.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say.
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


def pack(numbers: Sequence[float]) -> str:
    """Numbers in decimal, separated by spaces: JSON's integers end at 2**53, and one string hashes quickly."""
    return " ".join(map(repr, numbers))


packed_once = lru_cache(maxsize=1024)(pack)
"""For tuples that stay as they are: orders, weights, bounds."""


def unpack(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def unpack_floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


def instant(moment: datetime) -> str:
    """UTC to the microsecond, as every database gives it back."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
