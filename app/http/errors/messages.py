"""Refusals of whole HTTP messages, before any route is known: malformed, ambiguous, or with too large a head.

Two parties that read an ambiguous message differently may disagree about who is calling and where a request ends
(request smuggling, RFC 9112 section 11.2). So nothing ambiguous is interpreted.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from app.errors import CorevaultError, Fault, InvalidRequest

SINGLE: Final = (
    *("authorization", "content-digest", "content-length", "content-type", "expect", "host", "idempotency-key"),
    *("if-range", "last-event-id", "range", "transfer-encoding", "upload-offset"),
)
"""Headers of which a request has at most one line."""
_STATE: Final = "refused_message"


class MessageRefused(InvalidRequest):
    """The message is not interpreted, so its connection ends with this answer."""

    http_status = 400

    def __init__(self, detail: str) -> None:
        super().__init__(detail, (Fault("", detail),))
        self.headers = {"Connection": "close"}


class HeadTooLarge(MessageRefused):
    http_status = 431


def refuse_message(scope: Scope, refusal: MessageRefused) -> None:
    """Let the application answer ``scope`` with ``refusal``, whatever it asks for."""
    scope["state"][_STATE] = refusal


def message_refusal(scope: Scope) -> CorevaultError | None:
    """Why the message of ``scope`` is refused, if it is."""
    refusal = scope["state"].get(_STATE)
    if isinstance(refusal, MessageRefused):
        return refusal
    headers = Headers(scope=scope)
    if repeated := [name for name in SINGLE if len(headers.getlist(name)) > 1]:
        return InvalidRequest.at(f"/header/{repeated[0]}", f"Send the header {repeated[0].title()} once.")
    return None
