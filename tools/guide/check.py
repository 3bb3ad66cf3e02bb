"""Checks that pages need no network: ``python -m tools.guide.check FOLDER``.

A page may link to other addresses, but loads no script, style, font or picture from them.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LOADS: Final = re.compile(
    r"""<(?:script|img|iframe|source|video|embed)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:url\(|@import\s)\s*["']?((?:https?:)?//[^"')\s]+)"""
)


def find_foreign_addresses(text: str) -> list[str]:
    """Find the addresses on other hosts from which a text loads something."""
    return [next(filter(None, groups)) for groups in _LOADS.findall(text)]


def check_folder(folder: Path) -> Iterator[str]:
    """Find one line for each address that a file loads from another host."""
    for path in sorted(folder.rglob("*.*")):
        if path.suffix in {".html", ".css", ".svg"}:
            for address in find_foreign_addresses(path.read_text()):
                yield f"{path.relative_to(folder)}: {address}"


if __name__ == "__main__":
    breaches = list(check_folder(Path(sys.argv[1])))
    sys.stdout.writelines(f"{breach}\n" for breach in breaches)
    sys.exit(bool(breaches))
