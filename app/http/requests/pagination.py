"""Lists, newest first: opaque cursors over time-sortable ids or sequence numbers."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, BeforeValidator
from pydantic_core import PydanticCustomError

from app.errors import InvalidRequest
from app.http.errors.validation_errors import CUSTOM

DEFAULT_LIMIT: Final = 50
LARGEST_LIMIT: Final = 200
_POSITION = re.compile(r"[a-z]{1,8}_[0-9a-z]{26}|[0-9]{1,18}", re.ASCII)

Row = TypeVar("Row")
View = TypeVar("View")


class Page(BaseModel, Generic[View]):
    """One page of a list; ``next_cursor`` is null on the last one."""

    items: list[View]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Where the page starts: ``limit`` rows strictly older than ``after`` (an id or a sequence number)."""

    limit: int
    after: str | None

    def after_id(self, prefix: str) -> str | None:
        """The id to continue below; a cursor of another list is as bad as a broken one."""
        if self.after is not None and not self.after.startswith(f"{prefix}_"):
            raise bad_cursor()
        return self.after

    def after_sequence(self) -> int | None:
        if self.after is not None and not self.after.isdecimal():
            raise bad_cursor()
        return None if self.after is None else int(self.after)


def _in_digits(value: object) -> object:
    """Signs, spaces and underscores, which Python reads over, are no part of a number here."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        raise PydanticCustomError(CUSTOM, "Use a whole number.")
    return value


def page_request(
    limit: Annotated[int, BeforeValidator(_in_digits), Query(ge=1, le=LARGEST_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> PageRequest:
    return PageRequest(limit, None if cursor is None else _decode(cursor))


Paging = Annotated[PageRequest, Depends(page_request)]


def page(
    rows: Sequence[Row], request: PageRequest, position: Callable[[Row], str | int], view: Callable[[Row], View]
) -> Page[View]:
    """The page made of ``rows``, of which the caller fetched up to ``request.limit + 1``, newest first."""
    shown = rows[: request.limit]
    more = len(rows) > request.limit
    return Page(items=[view(row) for row in shown], next_cursor=_encode(position(shown[-1])) if more else None)


def bad_cursor() -> InvalidRequest:
    return InvalidRequest.at("/query/cursor", "The query parameter 'cursor' is not one that this list gave out.")


def _encode(position: str | int) -> str:
    return base64.urlsafe_b64encode(str(position).encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise bad_cursor() from None
    if _POSITION.fullmatch(position) is None:
        raise bad_cursor()
    return position
