"""Writes the source folder of the site: ``python -m tools.guide FOLDER``.

A file that has not changed is not written again, so that Sphinx reads only the changed pages.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools.guide import http_api, sdk, settings
from tools.guide.documents import make_documents

ADDED = {"Reference": [f"{http_api.FOLDER}/index.md", f"{sdk.FOLDER}/index.md", settings.PLACE]}


def make_files() -> Iterator[tuple[str, bytes]]:
    """Make every file of the source folder. Yields their places and contents."""
    yield from make_documents(ADDED)
    yield settings.PLACE, settings.make_settings_page().encode()
    for place, text in (*http_api.make_http_pages(), *sdk.make_sdk_pages()):
        yield place, text.encode()


def write_files(folder: Path) -> None:
    """Write the source folder, and remove files of pages that no longer exist."""
    files = dict(make_files())
    for place, content in files.items():
        path = folder / place
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in files:
            path.unlink()


if __name__ == "__main__":
    write_files(Path(sys.argv[1]))
