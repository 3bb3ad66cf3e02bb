"""The reference page ``/docs``: complete, self-contained, and safe to show."""

from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from app.http.reference.markup import Markup, make_paragraphs, tag
from app.http.reference.page import render_page

LOADING = {"src", "srcset", "data", "action", "background", "poster"}


class Reader(HTMLParser):
    """Collects elements, links, anchors and text, and checks that elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in {"meta", "br"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, each, value in self.attributes if each == name]


@pytest.fixture
def page(client: httpx.Client) -> Reader:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Reader(answer.text)


@pytest.fixture
def document(client: httpx.Client) -> dict[str, Any]:
    return dict(client.get("/openapi.json").json())


def test_page_loads_and_runs_nothing(client: httpx.Client, page: Reader) -> None:
    policy = client.get("/docs").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not {"script", "link", "img", "iframe", "form", "object", "base"} & page.tags
    assert [each for each in page.attributes if each[1] in LOADING or each[1].startswith("on")] == []
    assert "style" not in {name for _, name, _ in page.attributes}, "the policy would block it"
    outside = [link for link in page.values("href") if not link.startswith(("#", "/openapi.json"))]
    assert outside == []


def test_every_operation_object_and_member_is_on_the_page(page: Reader, document: dict[str, Any]) -> None:
    anchors, words = set(page.values("id")), set(page.words)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["operationId"] in anchors
            assert f"{method.upper()} {path}" in words
    for name, schema in document["components"]["schemas"].items():
        assert f"schema-{name}" in anchors
        assert set(schema.get("properties", {})) <= words, name


def test_every_link_has_a_place(page: Reader) -> None:
    anchors = page.values("id")
    assert len(set(anchors)) == len(anchors)
    assert {link[1:] for link in page.values("href") if link.startswith("#")} <= set(anchors)


def test_text_of_the_document_is_escaped() -> None:
    harmful = "<script>alert(1)</script>"
    operation = {"summary": harmful, "operationId": 'a" onclick="b', "description": f"`{harmful}`", "responses": {}}
    document = {
        "info": {"title": harmful, "summary": harmful},
        "paths": {f"/{harmful}": {"get": operation}},
        "components": {"schemas": {"A": {"description": harmful, "examples": [{harmful: harmful}]}}},
    }
    page = Reader(render_page(document))
    assert "script" not in page.tags
    assert "onclick" not in {name for _, name, _ in page.attributes}
    assert harmful in page.words


def test_backticks_mark_code_and_blank_lines_paragraphs() -> None:
    assert make_paragraphs("Use `a < b`,\nor ``c``.\n\nNo more.") == (
        "<p>Use <code>a &lt; b</code>,\nor <code>c</code>.</p><p>No more.</p>"
    )
    assert tag("p", "<", Markup("<br>")) == "<p>&lt;<br></p>"
