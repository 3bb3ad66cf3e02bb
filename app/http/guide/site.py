"""The files of the documentation site, and the policies of its pages.

A page may load scripts, styles, fonts and pictures from this server only. The theme of the site writes a few scripts
and styles into each page. The page's policy allows exactly these, by their digests. It allows no style attribute, and
``make docs`` leaves none.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app.errors import NotFound

INDEX: Final = "index.html"
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
_OTHER: Final = "application/octet-stream"
_COMMON: Final = "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'"
_SCRIPT: Final = re.compile(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
_STYLE: Final = re.compile(r"<style\b[^>]*>(.*?)</style>", re.DOTALL)


@dataclass(frozen=True)
class Site:
    """The files below a folder, by their addresses in it. Nothing outside of the folder has an address."""

    files: dict[str, Path]
    _policies: dict[str, str] = field(default_factory=dict)

    def find(self, address: str) -> Path | None:
        """Find the file at an address. The address of a folder is that of its index page."""
        return self.files.get(f"{address}{INDEX}" if address == "" or address.endswith("/") else address)

    def read(self, path: Path) -> bytes:
        """Read a file of the site. Raises ``NotFound`` if it was removed after the start."""
        try:
            return path.read_bytes()
        except OSError:
            raise NotFound("This page of the documentation site was removed. Start at /docs/guide/.") from None

    def find_policy(self, path: Path, content: bytes) -> str:
        """Find the Content-Security-Policy of a file with this content."""
        if path.suffix != ".html":
            return make_policy("")
        key = str(path)
        if key not in self._policies:
            self._policies[key] = make_policy(content.decode("utf-8", "replace"))
        return self._policies[key]


def open_site(folder: Path | None) -> Site | None:
    """Open the site in ``folder``; None if there is no folder or no index page in it."""
    if folder is None or not (folder / INDEX).is_file():
        return None
    root = folder.resolve()
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    own = {path.relative_to(root).as_posix(): path for path in found if path.resolve().is_relative_to(root)}
    return Site(own)


def find_media_type(path: Path) -> str:
    """Find the media type of a file by its suffix."""
    return MEDIA_TYPES.get(path.suffix, _OTHER)


def make_policy(page: str) -> str:
    """Make the policy of a page: files of this server, and the page's own scripts and styles by digest."""
    return (
        f"default-src 'none'; script-src 'self' {_list_digests(_SCRIPT.findall(page))}; "
        f"style-src 'self' {_list_digests(_STYLE.findall(page))}; {_COMMON}; frame-ancestors 'none'"
    ).replace(" ;", ";")


def _list_digests(texts: Iterable[str]) -> str:
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts}
    return " ".join(f"'sha256-{digest}'" for digest in sorted(digests))
