"""The tree of pages: titles, and lists of pages for the navigation."""

from collections.abc import Iterable


def make_tree(pages: Iterable[str], caption: str = "", *, is_hidden: bool = True) -> str:
    """Make the list of pages below a page, for the navigation.

    Args:
        pages: names of pages, relative to the page that has the list.
        caption: the heading in the navigation.
        is_hidden: whether the page itself does not show the list.
    """
    options = [*([":hidden:"] if is_hidden else [":maxdepth: 1"]), *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["```{toctree}", *options, "", *pages, "```", ""])


def make_page(title: str, *parts: str) -> str:
    """Make a Markdown page."""
    return "\n\n".join([f"# {title}", *parts]) + "\n"
