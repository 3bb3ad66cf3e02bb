"""Paginated lists."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from corevault._http import Http, Params
from corevault._io import iterate
from corevault._show import Table
from corevault.errors import UnexpectedReply, WrongType
from corevault.replies._decode import Reply

R = TypeVar("R", bound=Reply)


@dataclass(frozen=True, repr=False)
class Page(Generic[R]):
    """One page, newest first. Iterating continues through all later pages; ``items`` is this page alone.

    Iterate over a page of an ``AsyncClient`` with ``async for``.

    >>> page = client.jobs.list(limit=1)
    >>> len(page.items), job.id in {each.id for each in page}
    (1, True)
    """

    items: tuple[R, ...]
    next_cursor: str | None
    _fetch_next: Callable[[str], Awaitable["Page[R]"]]
    _is_async: bool = False

    def __repr__(self) -> str:
        more = ", and more pages" if self.next_cursor is not None else ""
        return f"Page({len(self.items)} items{more})"

    def __str__(self) -> str:
        return str(self._table()) if self.items else repr(self)

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    def _table(self) -> Table:
        return Table([item.facts() for item in self.items])

    def __iter__(self) -> Iterator[R]:
        if self._is_async:
            raise WrongType("This page comes from an AsyncClient: use async for, or items for this page alone.")
        return iterate(self._walk())

    def __aiter__(self) -> AsyncIterator[R]:
        return self._walk()

    async def _walk(self) -> AsyncGenerator[R, None]:
        page = self
        while True:
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            page = await page._fetch_next(page.next_cursor)


async def fetch_page(http: Http, path: str, kind: type[R], params: Params) -> Page[R]:
    """The page at ``params["cursor"]``, or the first page."""
    body = await http.get(path, params)
    if not isinstance(body, dict) or not isinstance(body.get("items"), list):
        raise UnexpectedReply("The server's answer is not a list of items.")
    items = tuple(kind.from_json(item) for item in body["items"])
    return Page(
        items,
        body.get("next_cursor"),
        lambda cursor: fetch_page(http, path, kind, {**params, "cursor": cursor}),
        http.io.is_async,
    )
