"""The reference page lists every reason of the catalogue, in its words."""

import re
from pathlib import Path

from app.inference.core.reasons import CATALOGUE
from app.inference.core.release import Grade

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "reliability.md").read_text()
ROW = re.compile(r"^\| `([a-z-]+)` \| (.*) \|$", re.MULTILINE)


def _section(name: str) -> str:
    return re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:][[*re.findall(r"^## (.*)$", PAGE, re.MULTILINE)].index(name)]


def test_the_page_has_the_catalogue_word_by_word() -> None:
    assert ROW.findall(_section("Reasons")) == [(reason.code, reason.words) for reason in CATALOGUE.values()]


def test_the_page_has_every_grade() -> None:
    assert [code for code, _ in ROW.findall(_section("Grades"))] == [str(grade) for grade in Grade]


def test_codes_in_the_page_of_methods_are_in_the_catalogue() -> None:
    text = (ROOT / "docs" / "reference" / "methods.md").read_text()
    codes = re.findall(r"^- `([a-z]+-[a-z-]+)`", text, re.MULTILINE)
    assert len(set(codes)) >= 8
    assert set(codes) <= set(CATALOGUE)
