"""Refusals of whole HTTP messages, before routing.

A message is refused if it is malformed or ambiguous, or if its head is too large. Two servers that interpret an
ambiguous message differently may disagree about its caller and its end (request smuggling, RFC 9112 section 11.2).
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from app.errors import CorevaultError, Fault, InvalidRequest

SINGLE: Final = (
    *("authorization", "content-digest", "content-length", "content-type", "expect", "host", "idempotency-key"),
    *("if-range", "last-event-id", "range", "transfer-encoding", "upload-offset"),
)
"""Headers that a request may contain at most once."""
_STATE: Final = "refused_message"


class MessageRefused(InvalidRequest):
    """A refusal of the whole message. The connection ends with this answer."""

    http_status = 400

    def __init__(self, detail: str) -> None:
        super().__init__(detail, (Fault("", detail),))
        self.headers = {"Connection": "close"}


class HeadTooLarge(MessageRefused):
    """A request line and headers that are larger than the server accepts."""

    http_status = 431


def refuse_message(scope: Scope, refusal: MessageRefused) -> None:
    """Make the application answer ``scope`` with ``refusal``."""
    scope["state"][_STATE] = refusal


def find_message_refusal(scope: Scope) -> CorevaultError | None:
    """Return why the message of ``scope`` is refused, or None."""
    refusal = scope["state"].get(_STATE)
    if isinstance(refusal, MessageRefused):
        return refusal
    headers = Headers(scope=scope)
    if repeated := [name for name in SINGLE if len(headers.getlist(name)) > 1]:
        return InvalidRequest.at(f"/header/{repeated[0]}", f"Send the header {repeated[0].title()} once.")
    return None
