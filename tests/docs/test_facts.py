"""Facts that documents state about commands, settings and terms agree with the code."""

import re
import unicodedata
from pathlib import Path

import pytest
from corevault import connection

from app.config import SECRETS, Settings

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
SETTINGS_PAGE = (ROOT / "docs" / "reference" / "settings.md").read_text()
OTHERS = {"HOST", "PORT"} | {
    name.removeprefix("COREVAULT_") for name in (connection.URL, connection.API_KEY, connection.FILE)
}
"""Variables of the command line and of the client, which are no settings of the service."""
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
PAGES = sorted(
    page
    for folder in ("", "client", "docs", "docs/how-to", "docs/reference", "docs/explanation", "docs/tutorials")
    for page in (ROOT / folder).glob("*.md")
)


def _read_names(text: str) -> set[str]:
    return set(re.findall(r"(?:COREVAULT_|…_)([A-Z][A-Z_]*[A-Z])\b", text))


def _list_terms(section: str) -> list[str]:
    terms = [row.split("|")[1].strip() for row in section.splitlines() if row.startswith("| ")]
    return terms[terms.index("term") + 1 :]


def _fold_term(term: str) -> str:
    plain = unicodedata.normalize("NFKD", term.lower())
    return re.sub(r"[^a-z ()\-]", "", plain)


def test_settings_page_lists_every_setting() -> None:
    assert {name.upper() for name in Settings.model_fields} <= _read_names(SETTINGS_PAGE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_settings_that_a_page_names_exist(page: Path) -> None:
    files = {f"{name.upper()}_FILE" for name in SECRETS}
    known = {name.upper() for name in Settings.model_fields} | files | OTHERS
    assert _read_names(page.read_text()) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize(
    "section", re.split(r"^## ", GLOSSARY, flags=re.MULTILINE)[1:], ids=lambda text: text.split()[0]
)
def test_terms_of_the_glossary_are_sorted(section: str) -> None:
    terms = _list_terms(section)
    assert len(terms) > 10
    assert terms == sorted(terms, key=_fold_term)


def test_each_term_of_the_glossary_has_one_entry() -> None:
    terms = [term for section in re.split(r"^## ", GLOSSARY, flags=re.MULTILINE)[1:] for term in _list_terms(section)]
    assert len(terms) == len(set(terms))


def test_contributing_names_every_promise() -> None:
    last = max(
        int(number) for number in re.findall(r"^\| W(\d+) \|", (ROOT / "docs/privacy.md").read_text(), re.MULTILINE)
    )
    assert f"W1 to W{last}" in (ROOT / "CONTRIBUTING.md").read_text()
