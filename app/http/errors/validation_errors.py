"""Conversion of validation errors to faults.

A fault has a pointer to a declared member and a message from a table. It never contains text of the caller. For an
unknown member, or a key of a free-form object, it points to the parent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from app.errors import Fault

CUSTOM: Final = "corevault"
"""Type of a ``PydanticCustomError`` whose message is a constant of this code and may be shown."""
FALLBACK: Final = "This value is not valid here."
MESSAGES: Final[Mapping[str, str]] = {
    "missing": "This member is required.",
    "extra_forbidden": "Remove the unknown member of this object.",
    "json_invalid": "Send valid JSON.",
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
    "union_tag_not_found": "The member that states the kind of this object is required.",
    "none_required": "Use null.",
    "datetime_type": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "datetime_parsing": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "datetime_from_date_parsing": "Use an RFC 3339 time, as in 2030-01-31T12:00:00Z.",
    "timezone_aware": "Use an RFC 3339 time with its offset, as in 2030-01-31T12:00:00Z.",
}
ONE_LINE: Final = r"^[^\x00-\x1f\x7f\u2028-\u202e\u2066-\u2069]+$"
"""Text without controls, also without the bidirectional ones, which can reorder the text around them on a page."""
COLUMN_NAME, KEY_ID = r"^[A-Za-z][A-Za-z0-9_]{0,62}$", r"^key_[0-9a-z]{1,64}$"
PATTERNS: Final[Mapping[str, str]] = {
    ONE_LINE: "Use one line of text, without control characters.",
    COLUMN_NAME: "Use a letter, and then at most 62 letters, digits and underscores (A to Z without accents).",
    KEY_ID: "Use the id of an API key, as in key_01jd0000000000000000000000.",
}
"""A message for each regular expression in the request schemas."""
_ONE: Final = re.compile(r"\b1 (character|item)s\b")


def convert_body_errors(
    errors: Sequence[Mapping[str, Any]], document: object, names: frozenset[str]
) -> tuple[Fault, ...]:
    """Convert the errors of a body; ``names`` are all member names of its schema."""
    faults = (
        Fault(make_pointer(_find_place(error, document), document, names), make_message(error)) for error in errors
    )
    return tuple(dict.fromkeys(faults))


def _find_place(error: Mapping[str, Any], document: object) -> Sequence[str | int]:
    """Return the location of an error without the tags of unions; for an unknown member, that of its parent."""
    location = tuple(_drop_tags(error["loc"], document))
    return location[:-1] if error["type"] == "extra_forbidden" else location


def _drop_tags(location: Sequence[str | int], node: object) -> Iterator[str | int]:
    """Yield the parts of a location except the tags of unions.

    A member may have the name of a tag. A tag is the part below its object, and equals the ``kind`` or ``type`` of it.
    """
    is_tagged = False
    for part in location:
        if not is_tagged and isinstance(node, dict) and part in (node.get("kind"), node.get("type")):
            is_tagged = True
            continue
        yield part
        if _has_part(node, part):
            node, is_tagged = node[part], False  # type: ignore[index]


def convert_parameter_errors(errors: Sequence[Mapping[str, Any]]) -> tuple[Fault, ...]:
    """Convert the errors of path, query and header parameters."""
    return tuple(_parameter_fault(error) for error in errors)


def _parameter_fault(error: Mapping[str, Any]) -> Fault:
    place, *rest = error["loc"]
    if place == "body":
        return Fault("", "Send a JSON body.")
    return Fault(make_parameter_pointer(place, rest[0]), f"The {place} parameter '{rest[0]}': {make_message(error)}")


def make_parameter_pointer(place: str, name: str) -> str:
    """Make the pointer of a parameter, as in ``/query/limit`` or ``/header/idempotency-key``."""
    return f"/{place}/{name}"


def make_message(error: Mapping[str, Any]) -> str:
    """Return the message for the error's type.

    The values that it quotes (bounds, lengths, choices) come from the service's schemas.
    """
    if error["type"] == CUSTOM:
        return str(error["msg"])
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS.get(error["ctx"]["pattern"], FALLBACK)
    template = MESSAGES.get(error["type"], FALLBACK)
    return _ONE.sub(r"1 \1", template.format_map(error.get("ctx", {})))


def make_pointer(location: Sequence[str | int], document: object, names: frozenset[str]) -> str:
    """Return the JSON pointer (RFC 6901) of the deepest declared member along ``location``.

    Pydantic's locations also contain union branches. They are not members of the document, so they are left out.
    """
    return "".join(f"/{part}" for part in _members(location, document, names))


def _members(location: Sequence[str | int], node: object, names: frozenset[str]) -> Iterator[str | int]:
    for position, part in enumerate(location):
        if isinstance(node, dict) and part in node:
            if part not in names:
                return
            node = node[part]
        elif _has_part(node, part):
            node = node[part]  # type: ignore[index]
        elif not (isinstance(node, dict) and position == len(location) - 1 and part in names):
            continue
        yield part


def _has_part(node: object, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and 0 <= part < len(node)
    return isinstance(node, dict) and part in node


def list_member_names(model: type[BaseModel]) -> frozenset[str]:
    """Return every member name that the model's JSON schema declares, at any depth."""
    return frozenset(_names(model.model_json_schema()))


def _names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for value in schema.values():
            yield from _names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _names(value)
