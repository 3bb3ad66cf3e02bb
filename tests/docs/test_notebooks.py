"""Notebooks agree with the pages from which they are made. ``tests/docs/test_pages_run.py`` runs the code."""

import json
from typing import Any

import pytest

from tools.guide.notebooks import FOLDER, PAGES, make_notebook

PAGE = "# Title\n\nWords.\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nMore.\n"


def _read_cells(text: str) -> list[dict[str, Any]]:
    return list(json.loads(text)["cells"])


@pytest.mark.parametrize("name", PAGES)
def test_a_notebook_is_that_of_its_page(name: str) -> None:
    """`make notebooks` writes it again."""
    assert (FOLDER / f"{name}.ipynb").read_text() == make_notebook((FOLDER / f"{name}.md").read_text())


def test_text_code_and_outputs_become_cells() -> None:
    cells = _read_cells(make_notebook(PAGE))
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    assert ["".join(cell["source"]) for cell in cells] == ["# Title\n\nWords.", "print(1)", "More."]
    assert cells[1]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}]


def test_code_of_a_notebook_compiles_and_cells_have_names() -> None:
    for name in PAGES:
        cells = _read_cells((FOLDER / f"{name}.ipynb").read_text())
        assert len({cell["id"] for cell in cells}) == len(cells)
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert len(code) == 6
        compile("\n".join(code), name, "exec")
