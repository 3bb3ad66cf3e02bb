"""Pages about the HTTP API, from its OpenAPI document: one page a tag, and one about all objects."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from app.http.reference.markup import Markup
from app.http.reference.page import Operation, group_operations, make_operation, make_schema
from app.main import describe_api
from tools.guide.pages import make_page, make_tree

FOLDER: Final = "reference/http"
_TITLES: Final = {"keys": "API keys"}


def make_http_pages() -> Iterator[tuple[str, str]]:
    """Make all pages and the OpenAPI document. Yields their places and contents."""
    document = describe_api()
    groups = group_operations(document)
    yield f"{FOLDER}/index.md", _make_index(groups)
    yield f"{FOLDER}/openapi.json", json.dumps(document, indent=1, ensure_ascii=False)
    for name, operations in groups.items():
        parts = [part for operation in operations for part in _make_operation_section(operation)]
        yield f"{FOLDER}/{name}.md", make_page(_title(name), *parts)
    schemas = sorted(document["components"]["schemas"].items())
    parts = [
        part for name, schema in schemas for part in (f"## {name}", _raw(_drop_heading(make_schema(name, schema))))
    ]
    yield f"{FOLDER}/objects.md", make_page("Objects", *parts)


def _make_index(groups: Mapping[str, list[Operation]]) -> str:
    words = (
        "This reference is made from the [OpenAPI document](openapi.json) of the code. A running server has the same "
        "pages at `/docs`, and the document at `/openapi.json`.\n\n"
        "Send an API key as `Authorization: Bearer cv_…`. Public releases need none. "
        "[Requests](../requests.md) has the rules for all calls."
    )
    lists = [
        "\n".join([f"## {_title(name)}", "", *(_link_operation(each) for each in operations)])
        for name, operations in groups.items()
    ]
    pages = [f"{name}.md" for name in groups]
    return make_page("HTTP API", words, *lists, make_tree([*pages, "objects.md"]))


def _link_operation(operation: Operation) -> str:
    method, path, described = operation
    return f"- {{ref}}`{described['summary']} <{described['operationId']}>`: `{method} {path}`"


def _make_operation_section(operation: Operation) -> Iterator[str]:
    described = operation[2]
    yield f"({described['operationId']})=\n## {described['summary']}"
    yield _raw(_drop_heading(make_operation(*operation)).replace('href="#schema-', 'href="objects.html#schema-'))


def _drop_heading(article: Markup) -> str:
    """Remove the heading. The page has it in Markdown, so that it is in the navigation."""
    start, _, rest = article.partition("<h3>")
    return start + rest.partition("</h3>")[2]


def _raw(markup: str) -> str:
    styled = markup.replace("<table>", '<table class="docutils">')
    return f"```````{{raw}} html\n{styled}\n```````"


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("-", " ").capitalize())
