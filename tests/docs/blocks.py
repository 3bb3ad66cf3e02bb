"""Reads the code blocks of documents, with the reasons why some are not run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("docs/tutorials", "docs/how-to", "docs/explanation")
PAGES: Final = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "client/README.md")),
    *sorted(page for folder in FOLDERS for page in (ROOT / folder).glob("*.md")),
)
_BLOCK: Final = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?```(?P<language>[^\n]*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One code block. ``reason`` is the reason why it is not run; empty: it is run."""

    page: str
    line: int
    language: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    """Read the code blocks of a page, in order."""
    return list(_find_blocks(page.relative_to(ROOT).as_posix(), page.read_text()))


def _find_blocks(name: str, text: str) -> Iterator[Block]:
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(name, line, match["language"], match["code"], match["reason"] or "")
