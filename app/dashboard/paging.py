"""Pagination of pages: the API's cursors, with a fixed number of rows."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Query

from app.http.requests.pagination import PageRequest, read_page_request

Cursor = Annotated[str | None, Query(max_length=200)]


def read_page(rows: int) -> Callable[[str | None], PageRequest]:
    """Make a dependency that reads the cursor of a page with ``rows`` rows."""

    def read_cursor(cursor: Cursor = None) -> PageRequest:
        return read_page_request(rows, cursor)

    return read_cursor
