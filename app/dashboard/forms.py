"""Bodies of HTML forms, with a size limit."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from email.message import Message
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from app.dashboard.cross_site import check_same_site
from app.errors import ContentTooLarge, Fault, InvalidRequest, UnsupportedMediaType

FORM_BYTES: Final = 256 * 1024
MOST_FIELDS: Final = 5_000
_TOO_LARGE: Final = (
    f"The form is larger than {FORM_BYTES // 1024} KiB, so nothing was done. Go back in your browser: it keeps your "
    "entries. Use fewer columns or categories, or shorter texts. The Python client and the API accept more."
)
_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form in order; a name may occur several times."""

    fields: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str:
        """Return the last value of a field without white space around it; empty if there is none."""
        return next((value.strip() for key, value in reversed(self.fields) if key == name), "")

    def several(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for key, value in self.fields if key == name]


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Faults of a form, by the name of the field."""

    by_field: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, message: str) -> None:
        """Add a fault, unless the field has one."""
        self.by_field.setdefault(name, message)

    def __bool__(self) -> bool:
        return bool(self.by_field)

    def sort(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """List fields and faults in the order of ``names``, and then all others."""
        first = [(name, self.by_field[name]) for name in names if name in self.by_field]
        return first + [each for each in self.by_field.items() if each not in first]

    def find(self, name: str) -> str | None:
        """Return the fault of a field, if it has one."""
        return self.by_field.get(name)


NOTHING_TYPED: Final = Form()
NO_MISTAKES: Final = Mistakes()
"""For pages whose form is not sent yet. Nothing is added to it."""


async def read_form(request: Request) -> Form:
    """Read the body of a form that a page of this server sent.

    Raises:
        Forbidden: the form was sent from elsewhere.
        UnsupportedMediaType, ContentTooLarge, InvalidRequest: the body is not a form, or too large.
    """
    check_same_site(request)
    message = Message()
    message["content-type"] = request.headers.get("content-type", "")
    if message.get_content_type() != _MEDIA_TYPE:
        raise UnsupportedMediaType(f"Send the form as {_MEDIA_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            raise ContentTooLarge(_TOO_LARGE)
    return parse_form(bytes(body))


def parse_form(body: bytes) -> Form:
    """Parse a form in UTF-8.

    Raises:
        InvalidRequest: the body is not UTF-8, or has too many fields or a null character.
    """
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS, encoding="utf-8"
        )
    except ValueError:
        pairs = None
    if pairs is None or any("\0" in name or "\0" in value for name, value in pairs):
        raise InvalidRequest(faults=(Fault("", "Send the form in UTF-8, with a reasonable number of fields."),))
    return Form(tuple(pairs))


SentForm = Annotated[Form, Depends(read_form)]
