"""From validation errors to faults: pointers to known members, messages from our own table.

A caller's own text never enters a fault: an unknown member, or a key of a free-form object, points to its parent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from app.errors import Fault

CUSTOM: Final = "corevault"
"""Type of a ``PydanticCustomError`` whose message is ours (a constant of the code) and may be shown."""
FALLBACK: Final = "This value is not valid here."
MESSAGES: Final[Mapping[str, str]] = {
    "missing": "This member is required.",
    "extra_forbidden": "This object has an unknown member; remove it.",
    "json_invalid": "The body is not valid JSON.",
    "string_type": "Use a string.",
    "string_too_short": "Use at least {min_length} characters.",
    "string_too_long": "Use at most {max_length} characters.",
    "bool_type": "Use true or false.",
    "bool_parsing": "Use true or false.",
    "int_type": "Use an integer.",
    "int_parsing": "Use an integer.",
    "int_from_float": "Use an integer.",
    "int_parsing_size": "Use a smaller integer.",
    "float_type": "Use a number.",
    "float_parsing": "Use a number.",
    "finite_number": "Use a finite number.",
    "greater_than": "Use a number greater than {gt}.",
    "greater_than_equal": "Use a number of at least {ge}.",
    "less_than": "Use a number less than {lt}.",
    "less_than_equal": "Use a number of at most {le}.",
    "list_type": "Use a list.",
    "too_short": "Use at least {min_length} items.",
    "too_long": "Use at most {max_length} items.",
    "dict_type": "Use an object.",
    "model_type": "Use an object.",
    "model_attributes_type": "Use an object.",
    "literal_error": "Use one of: {expected}.",
    "enum": "Use one of: {expected}.",
    "union_tag_invalid": "Use one of: {expected_tags}.",
    "union_tag_not_found": "The member that says which kind this is, is required.",
    "none_required": "Use null.",
    "datetime_type": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "datetime_parsing": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "datetime_from_date_parsing": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "timezone_aware": "Use an RFC 3339 time with its offset, as in 2030-01-31T12:00:00Z.",
}
ONE_LINE, COLUMN_NAME, KEY_ID = r"^[^\x00-\x1f\x7f]+$", r"^[A-Za-z][A-Za-z0-9_]{0,62}$", r"^key_[0-9a-z]{1,64}$"
PATTERNS: Final[Mapping[str, str]] = {
    ONE_LINE: "Use one line of text, without control characters.",
    COLUMN_NAME: "Use a letter, and then at most 62 letters, digits and underscores (A to Z without accents).",
    KEY_ID: "Use the id of an API key, as in key_01jd0000000000000000000000.",
}
"""Every pattern of a request, in words."""
_ONE: Final = re.compile(r"\b1 (character|item)s\b")


def body_faults(errors: Sequence[Mapping[str, Any]], document: object, known: frozenset[str]) -> tuple[Fault, ...]:
    """Faults of a body; ``known`` are all member names of its schema."""
    faults = (Fault(pointer(error["loc"], document, known), message(error)) for error in errors)
    return tuple(dict.fromkeys(faults))


def parameter_faults(errors: Sequence[Mapping[str, Any]]) -> tuple[Fault, ...]:
    """Faults of path, query and header parameters, whose names are ours."""
    return tuple(_parameter_fault(error) for error in errors)


def _parameter_fault(error: Mapping[str, Any]) -> Fault:
    place, *names = error["loc"]
    if place == "body":
        return Fault("", "A JSON body is required.")
    return Fault(parameter(place, names[0]), f"The {place} parameter '{names[0]}': {message(error)}")


def parameter(place: str, name: str) -> str:
    """The pointer of a parameter, as of a member of the request: ``/query/limit``, ``/header/idempotency-key``."""
    return f"/{place}/{name}"


def message(error: Mapping[str, Any]) -> str:
    """Our sentence for the error's type. What it quotes (bounds, patterns, choices) comes from our own schemas."""
    if error["type"] == CUSTOM:
        return str(error["msg"])
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS.get(error["ctx"]["pattern"], FALLBACK)
    template = MESSAGES.get(error["type"], FALLBACK)
    return _ONE.sub(r"1 \1", template.format_map(error.get("ctx", {})))


def pointer(location: Sequence[str | int], document: object, known: frozenset[str]) -> str:
    """The JSON pointer (RFC 6901) of the deepest known member on the way to ``location``.

    Locations also name union branches, which are no members of the document: those are passed over.
    """
    return "".join(f"/{part}" for part in _members(location, document, known))


def _members(location: Sequence[str | int], node: object, known: frozenset[str]) -> Iterator[str | int]:
    for position, part in enumerate(location):
        if isinstance(node, dict) and part in node:
            if part not in known:
                return
            node = node[part]
        elif isinstance(node, list) and isinstance(part, int) and 0 <= part < len(node):
            node = node[part]
        elif not (isinstance(node, dict) and position == len(location) - 1 and part in known):
            continue
        yield part


def member_names(model: type[BaseModel]) -> frozenset[str]:
    """Every member name that the model's JSON schema declares, at any depth."""
    return frozenset(_names(model.model_json_schema()))


def _names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from _names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _names(value)
