"""Makes Jupyter notebooks of tutorials: ``make notebooks``.

A notebook has the text, the code and the outputs of its page. Tests run the code of the pages on a real server.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
PAGES: Final = ("protect-a-table", "analyse-a-table")
_BLOCK: Final = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make_notebook(page: str) -> str:
    """Make the notebook of a page, as JSON in the format 4.5 of Jupyter."""
    cells: list[dict[str, Any]] = []
    position = 0
    for match in _BLOCK.finditer(page):
        _add_text(cells, page[position : match.start()])
        position = match.end()
        if match[1] == "python":
            cells.append(_make_cell("code", match[2], execution_count=None, outputs=[]))
        else:
            cells[-1]["outputs"] = [
                {"name": "stdout", "output_type": "stream", "text": match[2].splitlines(keepends=True)}
            ]
    _add_text(cells, page[position:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _add_text(cells: list[dict[str, Any]], text: str) -> None:
    if text.strip():
        cells.append(_make_cell("markdown", text.strip()))


def _make_cell(kind: str, source: str, **members: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source.rstrip("\n").splitlines(keepends=True), **members}


def write_notebooks() -> None:
    """Write the notebook of each page, in the folder of the page."""
    for name in PAGES:
        (FOLDER / f"{name}.ipynb").write_text(make_notebook((FOLDER / f"{name}.md").read_text()))


if __name__ == "__main__":
    write_notebooks()
