"""The documentation site at ``/docs/guide/``: only its files, with policies that allow only them."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.http.guide.site import make_policy, open_site
from app.main import create_app
from app.services import Services
from tests.factories.transport import AppTransport

SCRIPT, STYLE, ATTRIBUTE = "theme = 1;", "body { --code: #fff; }", "display: none;"
PAGE = (
    f'<!doctype html><script>{SCRIPT}</script><script src="_static/furo.js"></script>'
    f'<style>{STYLE}</style><svg style="{ATTRIBUTE}"></svg><h1>Guide</h1>'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    for name, text in (("index.html", PAGE), ("adr/index.html", "adr"), ("_static/furo.js", "1"), ("a.inv", "x")):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "secret.html").write_text("secret")
    (site / "linked.html").symlink_to(tmp_path / "secret.html")
    return site


@pytest.fixture
def served(services: Services, folder: Path) -> Iterator[httpx.Client]:
    transport = AppTransport(create_app(services, guide=folder))
    with httpx.Client(transport=transport, base_url="http://corevault.test") as client:
        yield client


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_pages_and_files_are_served(served: httpx.Client) -> None:
    types = {
        "": "text/html; charset=utf-8",
        "index.html": "text/html; charset=utf-8",
        "adr/": "text/html; charset=utf-8",
        "_static/furo.js": "text/javascript; charset=utf-8",
        "a.inv": "application/octet-stream",
    }
    for address, media_type in types.items():
        answer = served.get(f"/docs/guide/{address}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, media_type)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert served.get("/docs/guide/_static/furo.js?v=5fa4622c").status_code == 200
    assert (
        served.get("/docs/guide/index.html?q=noise&check_keywords=yes&area=default&highlight=noise").status_code == 200
    )
    assert served.get("/docs/guide/?other=1").status_code == 422
    assert served.head("/docs/guide/").status_code == 200
    assert served.post("/docs/guide/").status_code == 405
    moved = served.get("/docs/guide")
    assert (moved.status_code, moved.headers["location"]) == (308, "/docs/guide/")


def test_a_policy_allows_the_scripts_and_styles_of_its_page_only(served: httpx.Client) -> None:
    policy = served.get("/docs/guide/").headers["content-security-policy"]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == f"'self' {_digest(SCRIPT)}"
    assert parts["style-src"] == f"'self' {_digest(STYLE)}"
    assert (parts["frame-ancestors"], parts["base-uri"], parts["form-action"]) == ("'none'", "'none'", "'self'")
    assert "unsafe" not in policy
    assert "sha256" not in served.get("/docs/guide/adr/").headers["content-security-policy"]
    assert make_policy("") == served.get("/docs/guide/a.inv").headers["content-security-policy"]


@pytest.mark.parametrize(
    "address", ["../secret.html", "%2e%2e/secret.html", "..%2Fsecret.html", "linked.html", "/etc/passwd", "adr", "no"]
)
def test_nothing_outside_of_the_site_is_served(served: httpx.Client, address: str) -> None:
    answer = served.get(f"/docs/guide/{address}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert "secret" not in answer.text


def test_a_page_that_was_removed_is_not_found(served: httpx.Client, folder: Path) -> None:
    (folder / "a.inv").unlink()
    assert served.get("/docs/guide/a.inv").status_code == 404


def test_without_a_site_a_sentence_says_what_to_do(client: httpx.Client, tmp_path: Path) -> None:
    answer = client.get("/docs/guide/")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"
    assert "This server has no documentation site. Its operator can build one with make docs" in answer.json()["detail"]
    assert (open_site(None), open_site(tmp_path), open_site(tmp_path / "no")) == (None, None, None)


def test_the_reference_page_links_to_a_site_that_exists(client: httpx.Client, served: httpx.Client) -> None:
    link = '<a href="/docs/guide/">documentation site</a>'
    assert link in served.get("/docs").text
    assert "/docs/guide" not in client.get("/docs").text


def test_the_site_is_not_part_of_the_api(served: httpx.Client) -> None:
    assert not [path for path in served.get("/openapi.json").json()["paths"] if path.startswith("/docs/guide")]
