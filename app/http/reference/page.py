"""The reference page: one HTML document without scripts and without requests to other addresses."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from app.http.reference.markup import Markup, join, make_example, make_paragraphs, make_table, mark_code, tag
from app.http.reference.types import describe_type

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: light-dark(#0b57d0, #8ab4f8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
article { border-bottom: 1px solid var(--line); padding-bottom: 1rem; }
h3 code { overflow-wrap: anywhere; }
nav ul { list-style: none; padding: 0; columns: 18rem; }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .75rem .35rem 0; text-align: left; vertical-align: top; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; }
code { font: .9em ui-monospace, monospace; }
"""
GUIDE: Final = "/docs/guide/"
"""The address of the documentation site."""
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page. It allows the style above and no other content."""


def render_page(document: Mapping[str, Any], *, has_guide: bool = False) -> str:
    """Render an OpenAPI 3.1 document as HTML. With ``has_guide`` it links to the documentation site."""
    info, groups = document["info"], group_operations(document)
    body = [
        tag("h1", f"{info['title']} API"),
        make_paragraphs(info.get("summary", "")),
        make_paragraphs("Send an API key as `Authorization: Bearer cv_…`. Public releases need none."),
        tag("p", "For programs: ", tag("a", "OpenAPI document", href="/openapi.json")),
        *([tag("p", "For people: ", tag("a", "documentation site", href=GUIDE))] if has_guide else []),
        tag("nav", *_list_contents(groups), aria_label="Operations"),
        *(_make_group(name, operations) for name, operations in groups.items()),
        tag("h2", "Objects", id="objects"),
        *(make_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items())),
    ]
    head = join(
        [
            tag("title", f"{info['title']} API"),
            Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            tag("style", Markup(_STYLE)),
        ]
    )
    return f"<!doctype html>{tag('html', tag('head', head), tag('body', tag('main', *body)), lang='en')}"


Operation = tuple[str, str, Mapping[str, Any]]
"""Method, path and description."""


def group_operations(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    """Group the operations of an OpenAPI document by their first tags."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation.get("tags", ["other"])[0], []).append((method.upper(), path, operation))
    return groups


def _list_contents(groups: Mapping[str, list[Operation]]) -> Iterator[Markup]:
    for name, operations in groups.items():
        yield tag("h2", name.capitalize())
        links = (tag("a", operation["summary"], href=f"#{operation['operationId']}") for _, _, operation in operations)
        yield tag("ul", *(tag("li", link) for link in links))


def _make_group(name: str, operations: list[Operation]) -> Markup:
    return tag("section", tag("h2", name.capitalize()), *(make_operation(*operation) for operation in operations))


def make_operation(method: str, path: str, operation: Mapping[str, Any]) -> Markup:
    """Make the article about one operation."""
    parts = [
        tag("h3", operation["summary"]),
        tag("p", tag("code", f"{method} {path}")),
        make_paragraphs(operation.get("description", "")),
    ]
    if parameters := operation.get("parameters"):
        parts += [tag("h4", "Parameters"), make_table(("Name", "Place", "Type", "Description"), map(_row, parameters))]
    if body := operation.get("requestBody"):
        parts += [tag("h4", "Body"), _list_media(body["content"])]
    parts += [tag("h4", "Answers"), make_table(("Status", "Body", "Description"), _list_answers(operation))]
    return tag("article", *parts, id=operation["operationId"])


def _row(parameter: Mapping[str, Any]) -> tuple[Markup, str, Markup, Markup]:
    name = join([tag("code", parameter["name"]), " (required)" if parameter.get("required") else ""])
    return name, parameter["in"], describe_type(parameter["schema"]), mark_code(parameter.get("description", ""))


def _list_media(content: Mapping[str, Any]) -> Markup:
    rows = ((tag("code", media), describe_type(each.get("schema", {}))) for media, each in content.items())
    return make_table(("Media type", "Content"), rows)


def _list_answers(operation: Mapping[str, Any]) -> Iterator[tuple[str, Markup, Markup]]:
    for status, response in sorted(operation["responses"].items()):
        content = response.get("content", {})
        bodies = [join([tag("code", media), " ", _name_content(each)]) for media, each in content.items()]
        codes = [code for each in content.values() for code in each.get("examples", {})] if status >= "4" else []
        described = [mark_code(response.get("description", "")), *(join([" ", tag("code", code)]) for code in codes)]
        yield status, join(body for body in _break_lines(bodies)), join(described)


def _name_content(media: Mapping[str, Any]) -> Markup:
    schema = media.get("schema")
    return describe_type(schema) if schema else join(["any"])


def _break_lines(parts: list[Markup]) -> Iterator[Markup]:
    for number, part in enumerate(parts):
        yield join([Markup("<br>"), part]) if number else part


def make_schema(name: str, schema: Mapping[str, Any]) -> Markup:
    """Make the article about one schema."""
    parts = [tag("h3", name), make_paragraphs(schema.get("description", ""))]
    if properties := schema.get("properties"):
        required = set(schema.get("required", ()))
        rows = (
            (
                join([tag("code", member), "" if member in required else " (optional)"]),
                describe_type(each),
                make_paragraphs(each.get("description", "")),
            )
            for member, each in properties.items()
        )
        parts.append(make_table(("Member", "Type", "Description"), rows))
    elif name:
        parts.append(tag("p", describe_type(schema)))
    examples = schema.get("examples", [])
    parts += [tag("details", tag("summary", "Example"), make_example(example)) for example in examples]
    return tag("article", *parts, id=f"schema-{name}")
