"""Relative links of all documents resolve, and decision records keep to one page."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_WORDS = 300
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_PATH = re.compile(r"`((?:app|workers|client|support|tests|tools|benchmarks|docs|deploy)/[\w./-]+\.\w+)`")
README_LINES = 120
CURRENT = ("README.md", "CONTRIBUTING.md", ":(glob)docs/*.md", "docs/how-to", "docs/reference", "docs/explanation")
"""Documents of the present code; decision records and lab notes describe the code of their time."""


def _list_documents(*patterns: str) -> list[str]:
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns)
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return sorted(path for path in listed if path.endswith(".md") and (ROOT / path).exists())


def _find_anchors(document: Path) -> set[str]:
    """Make the anchors of the headings as GitHub does: lower case, no punctuation, hyphens for spaces."""
    text = FENCED.sub("", document.read_text())
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _find_links(document: Path) -> Iterator[str]:
    text = INLINE_CODE.sub("", FENCED.sub("", document.read_text()))
    return (link for link in LINK.findall(text) if not re.match(r"[a-z]+:", link))


def _resolves(document: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or (target.suffix == ".md" and anchor in _find_anchors(target))


@pytest.mark.parametrize("path", _list_documents("*.md"))
def test_relative_links_resolve(path: str) -> None:
    document = ROOT / path
    assert [link for link in _find_links(document) if not _resolves(document, link)] == []


@pytest.mark.parametrize("path", _list_documents(*CURRENT))
def test_files_that_a_current_document_names_exist(path: str) -> None:
    named = CODE_PATH.findall(FENCED.sub("", (ROOT / path).read_text()))
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_the_index_lists_every_page() -> None:
    pages = _list_documents("docs/tutorials", "docs/how-to", "docs/reference", "docs/explanation")
    listed = set(_find_links(ROOT / "docs" / "README.md"))
    assert [page for page in pages if page.removeprefix("docs/") not in listed] == []


@pytest.mark.parametrize("path", _list_documents("docs/adr"))
def test_a_decision_record_is_short_and_in_the_house_form(path: str) -> None:
    text = (ROOT / path).read_text()
    words = [word for word in text.split() if any(character.isalnum() for character in word)]
    assert len(words) <= MOST_WORDS
    number = int(Path(path).name[:4])
    assert text.startswith(f"# {number}. ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]


def test_readme_is_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < README_LINES
