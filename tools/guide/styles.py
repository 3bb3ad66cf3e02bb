"""Inline styles of the theme, written as attributes.

So the policy of a page needs no exception for them.
"""

import re
from pathlib import Path
from typing import Final

_STYLE: Final = re.compile(r'\sstyle="([^"]*)"')
_ATTRIBUTES: Final = {
    "display: none;": 'display="none"',
    "opacity: 50%": 'opacity="0.5"',
    "width: 100%": 'width="100%"',
    "width: 33%; vertical-align: top;": 'width="33%" valign="top"',
}
"""Style that the theme writes -> attributes that mean the same."""


def replace_styles(page: str) -> str:
    """Replace the styles of a page that have an equivalent."""
    return _STYLE.sub(lambda found: f" {_ATTRIBUTES.get(found[1], found[0].strip())}", page)


def find_styles(page: str) -> list[str]:
    """Find the inline styles of a page."""
    return _STYLE.findall(page)


def replace_in_folder(folder: Path) -> None:
    """Replace the styles of all pages below ``folder``."""
    for path in folder.rglob("*.html"):
        page = path.read_text()
        if (changed := replace_styles(page)) != page:
            path.write_text(changed)
