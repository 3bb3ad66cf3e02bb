"""Paginated lists."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from corevault._http import Http, Params
from corevault.errors import UnexpectedReply
from corevault.replies._decode import Reply

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True)
class Page(Generic[R]):
    """One page, newest first. Iterating continues through all later pages; ``items`` is this page alone."""

    items: tuple[R, ...]
    next_cursor: str | None
    _fetch_next: Callable[[str], "Page[R]"]

    def __iter__(self) -> Iterator[R]:
        page = self
        while True:
            yield from page.items
            if page.next_cursor is None:
                return
            page = page._fetch_next(page.next_cursor)


def fetch_page(http: Http, path: str, kind: type[R], params: Params) -> Page[R]:
    """The page at ``params["cursor"]``, or the first page."""
    body = http.get(path, params)
    if not isinstance(body, dict) or not isinstance(body.get("items"), list):
        raise UnexpectedReply("The server's answer is not a list of items.")
    items = tuple(kind.from_json(item) for item in body["items"])
    return Page(
        items, body.get("next_cursor"), lambda cursor: fetch_page(http, path, kind, {**params, "cursor": cursor})
    )
