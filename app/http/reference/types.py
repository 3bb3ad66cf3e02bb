"""Types of JSON schemas in words, with links to named schemas."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.http.reference.markup import Markup, join, tag

_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "pattern {}",
    "format": "{}",
}


def describe_type(schema: Mapping[str, Any]) -> Markup:
    """Describe the type of a schema."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return tag("a", name, href=f"#schema-{name}")
    alternatives = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    if alternatives:
        return _join_words(" or ", [describe_type(each) for each in alternatives])
    if "const" in schema:
        return tag("code", str(schema["const"]))
    if "enum" in schema:
        return _join_words(", ", [tag("code", str(each)) for each in schema["enum"]])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        described = join(["list of ", describe_type(schema.get("items", {}))])
    elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        described = join(["object of ", describe_type(schema["additionalProperties"])])
    else:
        described = join([kind])
    limits = ", ".join(_list_limits(schema))
    return join([described, f" ({limits})"]) if limits else described


def _list_limits(schema: Mapping[str, Any]) -> Iterator[str]:
    for member, words in _LIMITS.items():
        if member in schema:
            value = schema[member]
            yield words.format(f"{value:g}" if isinstance(value, float) else value)


def _join_words(separator: str, parts: list[Markup]) -> Markup:
    words = [parts[0]]
    for part in parts[1:]:
        words += [join([separator]), part]
    return join(words)
