"""Checks of pages as HTML: well-formed, and with the names that assistive technology needs."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = frozenset({"meta", "link", "input", "br", "hr", "img", "circle", "line", "path", "rect"})
CONTROLS = frozenset({"input", "select", "textarea"})
HEADINGS = ("h1", "h2", "h3", "h4")
SCRIPT = re.compile(r"/dashboard/static/[a-z-]+\.[0-9a-f]{16}\.mjs")
"""Addresses of the scripts that pages may load."""
INLINE = frozenset({"style", "onclick", "onload", "onsubmit", "onchange", "onerror"})


@dataclass
class Element:
    """An element, and the text inside of it."""

    tag: str
    attributes: dict[str, str]
    inside: tuple[str, ...]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements of a page in order, and faults of its tags."""

    elements: list[Element] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if repeated := [name for name, count in Counter(name for name, _ in attrs).items() if count > 1]:
            self.faults.append(f"<{tag}> repeats {repeated}")
        inside = tuple(each.tag for each in self.open)
        element = Element(tag, {name: value or "" for name, value in attrs}, inside)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1].tag if self.open else 'nothing'}")
            return
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def remove_scripts(html: str) -> tuple[str, int]:
    """Remove the scripts of the dashboard; return the rest and their number."""
    return re.subn(rf'<script type="module" src="{SCRIPT.pattern}"></script>', "", html)


def find_faults(html: str) -> list[str]:
    """Find the faults of a page; an empty list if there is none."""
    page = Page()
    page.feed(html)
    page.close()
    faults = [*page.faults, *(f"<{each.tag}> is not closed" for each in page.open)]
    return [*faults, *_check_ids(page), *_check_names(page), *_check_structure(page), *_check_inline(page)]


def _check_ids(page: Page) -> Iterator[str]:
    counts = Counter(each.attributes["id"] for each in page.elements if "id" in each.attributes)
    yield from (f"id {name} occurs {count} times" for name, count in counts.items() if count > 1)
    for each in page.elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            for reference in each.attributes.get(name, "").split():
                if reference not in counts:
                    yield f"{name}={reference} refers to nothing"
        address = each.attributes.get("href", "")
        if address.startswith("#") and address[1:] not in counts:
            yield f"the link {address} leads to nothing"


def _check_names(page: Page) -> Iterator[str]:
    labelled = {each.attributes["for"] for each in page.elements if each.tag == "label" and each.text.strip()}
    for each in page.elements:
        named = each.text.strip() or each.attributes.get("aria-label")
        if (
            each.tag in CONTROLS
            and each.attributes.get("type") != "hidden"
            and each.attributes.get("id") not in labelled
        ):
            yield f"the control {each.attributes} has no label"
        if each.tag in {"a", "button", "summary", "th"} and not named:
            yield f"<{each.tag} {each.attributes}> has no name"
        if each.attributes.get("role") in {"img", "region", "alert"} and not (
            each.attributes.get("aria-label") or each.attributes.get("aria-labelledby")
        ):
            yield f"<{each.tag} role={each.attributes['role']}> has no name"
        if each.tag == "svg" and not ({"role", "aria-hidden"} & each.attributes.keys()):
            yield "a picture is neither named nor hidden"
        if each.tag == "th" and each.attributes.get("scope") not in {"col", "row"}:
            yield f"the header {each.text.strip()} has no scope"


def _check_structure(page: Page) -> Iterator[str]:
    counts = Counter(each.tag for each in page.elements if "svg" not in each.inside)
    yield from (f"{counts[tag]} of <{tag}>" for tag in ("h1", "main", "title") if counts[tag] != 1)
    levels = [HEADINGS.index(each.tag) for each in page.elements if each.tag in HEADINGS]
    yield from (f"a heading skips a level: {levels}" for low, high in pairwise(levels) if high > low + 1)
    for each in page.elements:
        if each.tag in {"a", "button"} and {"a", "button"} & set(each.inside):
            yield f"<{each.tag}> inside of a link or button"
        if each.tag == "form" and "form" in each.inside:
            yield "a form inside of a form"
        if each.tag in {"div", "p", "dl", "ul", "ol", "table", "h2"} and "p" in each.inside:
            yield f"<{each.tag}> inside of a paragraph"


def _check_inline(page: Page) -> Iterator[str]:
    for each in page.elements:
        is_script = each.tag == "script" and each.attributes.get("type") == "module"
        if is_script and SCRIPT.fullmatch(each.attributes.get("src", "")) is not None:
            continue
        if each.tag in {"script", "style", "iframe", "object", "embed"}:
            yield f"<{each.tag}> is not allowed"
        yield from (f"{name} is not allowed" for name in INLINE & each.attributes.keys())
        for name in ("src", "href", "action"):
            if each.attributes.get(name, "/").partition(":")[0] in {"http", "https", "javascript", "data"}:
                yield f"{name} leads elsewhere"
