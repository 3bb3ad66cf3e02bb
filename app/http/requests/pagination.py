"""Pagination of lists, newest first, with opaque cursors.

A cursor encodes the position of the last row of a page: a time-sortable id or a sequence number.
"""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from app.errors import InvalidRequest
from app.http.errors.validation_errors import CUSTOM
from app.http.requests.bodies import ResponseBody

DEFAULT_LIMIT: Final = 50
LARGEST_LIMIT: Final = 200
_POSITION = re.compile(r"[a-z]{1,8}_[0-9a-z]{26}|[0-9]{1,18}", re.ASCII)

Row = TypeVar("Row")
View = TypeVar("View")


class Page(ResponseBody, Generic[View]):
    """One page of a list."""

    # With docstrings, pydantic would search all frames of the stack for each kind of item, which slows the start.
    model_config = ConfigDict(use_attribute_docstrings=False)

    items: Annotated[list[View], Field(description="Items of this page, newest first.")]
    next_cursor: Annotated[
        str | None,
        Field(description="Value of the query parameter `cursor` for the next page; null on the last page."),
    ]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page: ``limit`` rows below ``after`` (an id or a sequence number)."""

    limit: int
    after: str | None

    def after_id(self, prefix: str) -> str | None:
        """Return the id below which the page starts.

        Raises:
            InvalidRequest: for a cursor of another list.
        """
        if self.after is not None and not self.after.startswith(f"{prefix}_"):
            raise make_cursor_error()
        return self.after

    def after_sequence(self) -> int | None:
        """Return the sequence number below which the page starts.

        Raises:
            InvalidRequest: for a cursor of another list.
        """
        if self.after is not None and not self.after.isdecimal():
            raise make_cursor_error()
        return None if self.after is None else int(self.after)


def _check_digits(value: object) -> object:
    """Refuse signs, spaces and underscores, which Python's ``int`` accepts."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise PydanticCustomError(CUSTOM, f"Use a whole number from 1 to {LARGEST_LIMIT}, with digits only.")
    return value


def read_page_request(
    limit: Annotated[int, BeforeValidator(_check_digits), Query(ge=1, le=LARGEST_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> PageRequest:
    """Read the page that the query parameters ask for."""
    return PageRequest(limit, None if cursor is None else _decode(cursor))


Paging = Annotated[PageRequest, Depends(read_page_request)]


def make_page(
    rows: Sequence[Row], request: PageRequest, position: Callable[[Row], str | int], view: Callable[[Row], View]
) -> Page[View]:
    """Make a page from rows, newest first.

    The caller fetches up to ``request.limit + 1`` rows: one more than the page shows if there is a next page.
    """
    shown = rows[: request.limit]
    more = len(rows) > request.limit
    return Page(items=[view(row) for row in shown], next_cursor=_encode(position(shown[-1])) if more else None)


def make_cursor_error() -> InvalidRequest:
    return InvalidRequest.at("/query/cursor", "Use the next_cursor of an earlier page of this list.")


def _encode(position: str | int) -> str:
    return base64.urlsafe_b64encode(str(position).encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise make_cursor_error() from None
    if _POSITION.fullmatch(position) is None:
        raise make_cursor_error()
    return position
