"""A page with the description of each setting in ``app/config.py``."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.guide.pages import make_page

CONFIG: Final = Path(__file__).resolve().parents[2] / "app" / "config.py"
PLACE: Final = "reference/settings-in-code.md"


def make_settings_page() -> str:
    """Make the page."""
    words = (
        "This page is made from `app/config.py`, the only module that reads settings. [Settings](settings.md) shows "
        "defaults and values for production."
    )
    sections = (f"## `COREVAULT_{name.upper()}`\n\n{text.replace('``', '`')}" for name, text in read_descriptions())
    return make_page("Each setting in the code", words, *sections)


def read_descriptions() -> Iterator[tuple[str, str]]:
    """Read the name and the docstring of each setting."""
    tree = ast.parse(CONFIG.read_text())
    (settings,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings")
    for node, after in zip(settings.body, settings.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
            yield node.target.id, _read_text(after)


def _read_text(node: ast.Expr) -> str:
    lines = str(ast.literal_eval(node.value)).strip().splitlines()
    return "\n".join(line.strip() for line in lines)
