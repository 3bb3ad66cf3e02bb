"""JSON as RFC 8259 and I-JSON mean it: UTF-8, no duplicate members, no NaN, no number that loses its value."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from app.errors import Fault, InvalidRequest
from app.http.errors.validation_errors import pointer

LARGEST_INTEGER: Final = 2**53
MALFORMED: Final = "The body is not valid JSON in UTF-8."
DEEPEST: Final = 64
_DIGITS: Final = 400  # far beyond any number that is accepted; longer ones are not worth converting


@dataclass(frozen=True, slots=True)
class Parsed:
    value: Any
    repeats_members: bool


def parse(raw: bytes) -> Parsed:
    """The document, with infinities in place of numbers that are too large.

    Raises:
        InvalidRequest: for malformed text, also for nesting beyond the interpreter's depth.
    """
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) < len(pairs)
        return found

    try:
        value = json.loads(raw.decode(), object_pairs_hook=members, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest.at("", MALFORMED) from error
    return Parsed(value, repeated)


def _integer(digits: str) -> int:
    return int(digits[:_DIGITS])


def residual_faults(parsed: Parsed, known: frozenset[str]) -> tuple[Fault, ...]:
    """What a schema may let through (in free-form members): numbers and text that cannot be kept faithfully."""
    places = dict.fromkeys((pointer(place, parsed.value, known), text) for place, text in _unfaithful(parsed.value))
    faults = tuple(Fault(place, text) for place, text in places)
    return (*faults, Fault("", "An object names a member twice.")) if parsed.repeats_members else faults


def _unfaithful(node: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match node:
        case dict() | list() if len(place) > DEEPEST:
            yield (), "Nest objects and lists less deeply."
        case dict():
            for name, value in node.items():
                yield from _unfaithful(name, place)
                yield from _unfaithful(value, (*place, name))
        case list():
            for index, value in enumerate(node):
                yield from _unfaithful(value, (*place, index))
        case float() if not math.isfinite(node):
            yield place, "Use a finite number."
        case int() if abs(node) > LARGEST_INTEGER:
            yield place, "Use an integer within ±2^53."
        case str() if _unstorable(node):
            yield place, "Use text without null characters and lone surrogates."


def _unstorable(text: str) -> bool:
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)
