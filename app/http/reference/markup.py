"""HTML from Python values; every text is escaped."""

import html
import json
import re
from collections.abc import Iterable
from typing import Final

_CODE: Final = re.compile(r"(`{1,2})(.+?)\1")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *content: str, **attributes: str) -> Markup:
    """Make an element. Content that is no :class:`Markup` is escaped, and so are the values of attributes."""
    named = "".join(f' {key.replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{named}>{join(content)}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    """Join parts. Text that is no :class:`Markup` is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def make_paragraphs(text: str) -> Markup:
    """Make paragraphs of a description, with the code that is in backticks."""
    return join(tag("p", mark_code(part)) for part in text.strip().split("\n\n") if part)


def mark_code(text: str) -> Markup:
    """Escape a text, and mark the code that is in backticks."""
    pieces, position = list[str](), 0
    for match in _CODE.finditer(text):
        pieces += [text[position : match.start()], tag("code", match[2])]
        position = match.end()
    return join([*pieces, text[position:]])


def make_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Markup:
    """Make a table."""
    first = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    return tag("table", first, tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)))


def make_example(value: object) -> Markup:
    """Make a block of JSON, or of text."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return tag("pre", tag("code", text))
