"""What headers and bodies say of the bytes that follow, checked before the first of them is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

from starlette.datastructures import Headers

from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.requests.digests import sha256_of_header

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
MEDIA_TYPES = frozenset({CSV, PARQUET, ARROW})
_PARAMETERS: Mapping[str, frozenset[str]] = {"charset": frozenset({"utf-8"}), "header": frozenset({"present"})}
_WHOLE_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
_NUMBERS: Mapping[str, str] = {
    "upload-offset": "Send the header Upload-Offset with the number of bytes that are stored so far.",
    "upload-length": "The header Upload-Length is the number of bytes of the whole file.",
}


@dataclass(frozen=True, slots=True)
class Announced:
    """A body: its length where the headers say it, and the digest that it must have."""

    length: int
    sha256: bytes | None


def body_of(headers: Headers) -> Announced:
    """What the headers say of the body.

    Raises:
        InvalidRequest: for a malformed Content-Digest, or a part of a representation.
    """
    if "content-range" in headers:
        raise InvalidRequest("Content-Range is not taken here; to send a content in parts, begin an upload.")
    length = headers.get("content-length", "0")
    digests = ",".join(headers.getlist("content-digest"))
    return Announced(
        length=int(length[:20]) if length.isdecimal() else 0,
        sha256=sha256_of_header(digests) if "content-digest" in headers else None,
    )


def offset_of(headers: Headers) -> int:
    """Parse the header Upload-Offset; raises InvalidRequest."""
    return whole_number_of(headers, "upload-offset")


def whole_number_of(headers: Headers, name: str) -> int:
    """Parse a header with a number of bytes.

    Raises:
        InvalidRequest: unless it occurs once and is a whole number.
    """
    values = headers.getlist(name)
    if len(values) != 1 or _WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise InvalidRequest.at(f"/header/{name}", _NUMBERS[name])
    return int(values[0])


def media_type_of(value: str) -> str:
    """The media type that a Content-Type names, without the parameters that go without saying.

    Raises:
        UnsupportedMediaType: for one that is not taken, or another encoding.
    """
    message = Message()
    message["content-type"] = value
    media_type = message.get_content_type() if value else ""
    if media_type not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"Send the table as one of {', '.join(sorted(MEDIA_TYPES))}.")
    for name, parameter in message.get_params(failobj=[])[1:]:
        if media_type != CSV or parameter.lower() not in _PARAMETERS.get(name.lower(), frozenset()):
            raise UnsupportedMediaType("Leave the parameters out; a table is UTF-8, and CSV has a header.")
    return media_type
