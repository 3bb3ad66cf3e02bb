"""The documentation site has no broken references, and its reference follows the code."""

import subprocess
import sys
from pathlib import Path

import corevault
import pytest

from app.config import Settings
from app.main import describe_api
from tools.guide.__main__ import make_files
from tools.guide.check import find_foreign_addresses
from tools.guide.sdk import PAGES, list_errors
from tools.guide.settings import read_descriptions
from tools.guide.styles import find_styles, replace_styles

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return dict(make_files())


@pytest.mark.long
def test_site_builds_without_warnings(tmp_path: Path) -> None:
    """Every link between pages and every type in the reference resolves. ``make docs`` makes the pages."""
    source = tmp_path / "source"
    subprocess.run([sys.executable, "-m", "tools.guide", source], cwd=ROOT, check=True)
    checks = ["-q", "-n", "-W", "--keep-going", "-b", "dummy", "-c", str(ROOT / "docs")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *checks, source, tmp_path / "built"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")


def test_every_operation_has_an_article(files: dict[str, bytes]) -> None:
    text = "".join(content.decode() for place, content in files.items() if place.startswith("reference/http/"))
    operations = [each for methods in describe_api()["paths"].values() for each in methods.values()]
    assert len(operations) > 40
    assert [each["operationId"] for each in operations if f'<article id="{each["operationId"]}">' not in text] == []


def test_every_setting_is_described() -> None:
    assert {name for name, _ in read_descriptions()} == set(Settings.model_fields)


def test_pages_of_the_client_have_every_public_name_once() -> None:
    """All other names are on the page of errors. So they must be errors or warnings."""
    placed = [name for _, names in PAGES.values() for name in names.split() if "." not in name]
    assert len(placed) == len(set(placed))
    assert set(placed) <= set(corevault.__all__)
    assert all(issubclass(getattr(corevault, name), Exception) for name in list_errors())


def test_navigation_has_every_page(files: dict[str, bytes]) -> None:
    index = files["index.md"].decode().replace("Use the client <client.md>", "client.md")
    top = [
        place for place in files if place.endswith(".md") and place.split("/")[0] not in {"adr", "lab", "benchmarks"}
    ]
    nested = [
        place for place in top if place.startswith(("reference/http/", "reference/sdk/")) and "index" not in place
    ]
    assert [place for place in top if place not in nested and f"\n{place}\n" not in index and place != "index.md"] == []


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ('<script src="https://a.example/b.js">', ["https://a.example/b.js"]),
        ('<link rel="stylesheet" href="//a.example/b.css">', ["//a.example/b.css"]),
        ("@font-face { src: url('https://a.example/f.woff2') }", ["https://a.example/f.woff2"]),
        ('<a href="https://a.example">', []),
        ('<script src="_static/b.js"><link href="c.css">', []),
    ],
)
def test_loads_from_other_hosts_are_found(text: str, addresses: list[str]) -> None:
    assert find_foreign_addresses(text) == addresses


def test_styles_of_the_theme_become_attributes() -> None:
    page = '<svg style="display: none;"></svg><p>style="x"</p><a id="i" style="color: red">b</a>'
    changed = replace_styles(page)
    assert changed == '<svg display="none"></svg><p>style="x"</p><a id="i" style="color: red">b</a>'
    assert find_styles(changed) == ["color: red"]
