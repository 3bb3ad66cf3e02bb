"""One way to write things down, so that a hash means the same everywhere: RFC 8785 canonical JSON and SHA-256."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import rfc8785


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form, in hexadecimal.

    Raises:
        rfc8785.CanonicalizationError: for what JSON cannot say, such as NaN.
    """
    return hashlib.sha256(rfc8785.dumps(dict(document))).hexdigest()


def pack(numbers: Iterable[float]) -> str:
    """Numbers in decimal, separated by spaces: JSON's integers end at 2**53, and one string hashes quickly."""
    return " ".join(map(repr, numbers))


def unpack(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def unpack_floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


def instant(moment: datetime) -> str:
    """UTC to the microsecond, as every database gives it back."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
