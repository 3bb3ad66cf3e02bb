"""Copies documents into the source folder of the site.

It adapts their links, and adds the navigation.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from tools.guide.pages import make_page, make_tree

ROOT: Final = Path(__file__).resolve().parents[2]
OUTSIDE: Final = {"client/README.md": "client.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages from documents outside ``docs``."""
TITLES: Final = {"client.md": "Use the client <client.md>"}
"""Titles in the navigation, if a page has another one."""
KINDS: Final = {".md", ".png", ".svg", ".csv", ".json", ".yml", ".ipynb"}
FOLDERS: Final = ("adr",)
"""Folders to which documents link, and that have no index."""
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def list_documents() -> dict[str, str]:
    """List the files of the site: the place of each in the repository, and in the site."""
    paths = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.*"))
    files = [path for path in paths if Path(path).suffix in KINDS and not path.startswith("_")]
    return {f"docs/{path}": _place(path) for path in files} | OUTSIDE


def make_documents(added: Mapping[str, list[str]]) -> Iterator[tuple[str, bytes]]:
    """Make every file of the site that comes from a document.

    Args:
        added: pages that belong to a section of the index and do not come from documents.

    Yields:
        the place in the site, and the content.
    """
    places = list_documents()
    for source, place in places.items():
        content = (ROOT / source).read_bytes()
        if place.endswith(".md"):
            text = _adapt_links(content.decode(), source, places)
            content = (_complete_index(text, added) if place == "index.md" else _complete(place, text)).encode()
        yield place, content
    yield from _make_appendix(places)


def _place(document: str) -> str:
    path = PurePosixPath(document)
    return str(path.with_name("index.md") if path.name == "README.md" else path)


def _adapt_links(text: str, source: str, places: Mapping[str, str]) -> str:
    """Let links between documents lead to their places in the site. Links in code stay."""
    codes = [(match.start(), match.end()) for match in _CODE.finditer(text)]

    def adapt(match: re.Match[str]) -> str:
        if any(start <= match.start() < end for start, end in codes):
            return match[0]
        return f"]({_adapt_link(match[1], source, places)})"

    return _LINK.sub(adapt, text)


def _adapt_link(link: str, source: str, places: Mapping[str, str]) -> str:
    path, hash_sign, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", link):
        return link
    target = os.path.normpath(PurePosixPath(source).parent / path)
    if (ROOT / target).is_dir():
        target += "/README.md"
    place = places.get(target) or _place(target.removeprefix("docs/"))
    return os.path.relpath(place, PurePosixPath(places[source]).parent) + hash_sign + anchor


def _complete_index(text: str, added: Mapping[str, list[str]]) -> str:
    """Add the navigation: the pages to which each section links, in the order of the links."""
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    trees, seen = list[str](), {"index.md", "adr/index.md", "lab/index.md", "benchmarks/index.md"}
    for section in sections:
        title = section.splitlines()[0]
        pages = [each.partition("#")[0] for each in _LINK.findall(section)] + added.get(title, [])
        new = [page for page in dict.fromkeys(pages) if page.endswith(".md") and page not in seen]
        seen.update(new)
        trees.append(make_tree((TITLES.get(page, page) for page in new), title))
    trees.append(make_tree(["adr/index.md", "lab/index.md", "benchmarks/index.md"], "Appendix"))
    return first.replace("# Documentation", "# Corevault", 1) + "## ".join(["", *sections]) + "\n" + "\n".join(trees)


def _complete(place: str, text: str) -> str:
    """Add the navigation to the index of a folder."""
    path = PurePosixPath(place)
    if path.name != "index.md":
        return text
    names = sorted(file.name for file in (ROOT / "docs" / path.parent).glob("*.md") if file.name != "README.md")
    return f"{text}\n{make_tree(names)}"


def _make_appendix(places: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    titles = {"adr": "Decisions"}
    for folder in FOLDERS:
        pages = sorted(PurePosixPath(place).name for place in places.values() if place.startswith(f"{folder}/"))
        tree = make_tree((page for page in pages if page.endswith(".md")), is_hidden=False)
        yield (
            f"{folder}/index.md",
            make_page(titles[folder], "One page each: context, decision, consequences.", tree).encode(),
        )
