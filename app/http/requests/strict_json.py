"""Strict JSON (RFC 8259, I-JSON): UTF-8, no duplicate members, no NaN, no inexact integers."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from app.errors import Fault, InvalidRequest
from app.http.errors.validation_errors import make_pointer

LARGEST_INTEGER: Final = 2**53
MALFORMED: Final = "The body is not valid JSON in UTF-8."
DEEPEST: Final = 64
_DIGITS: Final = 400  # more than any accepted number has; a longer number would only cost time


@dataclass(frozen=True, slots=True)
class Parsed:
    value: Any
    repeats_members: bool


def parse(raw: bytes) -> Parsed:
    """Parse a document. Real numbers that are too large become infinities.

    Raises:
        InvalidRequest: the text is malformed, or nested deeper than the interpreter can parse.
    """
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        by_name = dict(pairs)
        repeated = repeated or len(by_name) < len(pairs)
        return by_name

    try:
        value = json.loads(raw.decode(), object_pairs_hook=members, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest.at("", MALFORMED) from error
    return Parsed(value, repeated)


def _integer(digits: str) -> int:
    return int(digits[:_DIGITS])


def find_residual_faults(parsed: Parsed, names: frozenset[str]) -> tuple[Fault, ...]:
    """Find numbers and text that cannot be stored exactly. A schema may admit them in free-form members."""
    places = dict.fromkeys(
        (make_pointer(place, parsed.value, names), text) for place, text in _find_inexact(parsed.value)
    )
    faults = tuple(Fault(place, text) for place, text in places)
    return (*faults, Fault("", "An object has a member twice; send it once.")) if parsed.repeats_members else faults


def _find_inexact(node: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match node:
        case dict() | list() if len(place) > DEEPEST:
            yield (), "Nest objects and lists less deeply."
        case dict():
            for name, value in node.items():
                yield from _find_inexact(name, place)
                yield from _find_inexact(value, (*place, name))
        case list():
            for index, value in enumerate(node):
                yield from _find_inexact(value, (*place, index))
        case float() if not math.isfinite(node):
            yield place, "Use a finite number."
        case int() if abs(node) > LARGEST_INTEGER:
            yield place, "Use an integer within ±2^53."
        case str() if _is_unstorable(node):
            yield place, "Use text without null characters and without lone surrogates."


def _is_unstorable(text: str) -> bool:
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)
