"""Checks that pages need no network and no inline style: ``python -m tools.guide.check FOLDER``.

A page may link to other addresses, but loads no script, style, font or picture from them. Its policy allows no style
attribute.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.guide.styles import find_styles

_LOADS: Final = re.compile(
    r"""<(?:script|img|iframe|source|video|embed)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import\s)\s*["']?((?:https?:)?//[^"')\s]+)"""
)


def find_foreign_addresses(text: str) -> list[str]:
    """Find the addresses on other hosts from which a text loads something."""
    return [next(filter(None, groups)) for groups in _LOADS.findall(text)]


def check_folder(folder: Path) -> Iterator[str]:
    """Find one line for each foreign address and each inline style."""
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in {".html", ".css", ".svg"}:
            text = path.read_text()
            styles = find_styles(text) if path.suffix == ".html" else []
            for fault in (*find_foreign_addresses(text), *styles):
                yield f"{path.relative_to(folder)}: {fault}"


if __name__ == "__main__":
    breaches = list(check_folder(Path(sys.argv[1])))
    sys.stdout.writelines(f"{breach}\n" for breach in breaches)
    sys.exit(bool(breaches))
