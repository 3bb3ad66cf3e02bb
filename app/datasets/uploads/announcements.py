"""Headers that announce a body: they are checked before its first byte is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

from starlette.datastructures import Headers

from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.requests.digests import parse_sha256_header

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
    """The length and the digest of a body, as its headers give them. A missing length is 0."""

    length: int
    sha256: bytes | None


def parse_body_headers(headers: Headers) -> Announced:
    """Parse the headers that describe the body.

    Raises:
        InvalidRequest: for a malformed Content-Digest, and for any Content-Range.
    """
    if "content-range" in headers:
        raise InvalidRequest(
            "This address does not support Content-Range; to send a content in parts, create an upload."
        )
    length = headers.get("content-length", "0")
    digests = ",".join(headers.getlist("content-digest"))
    return Announced(
        length=int(length[:20]) if length.isdecimal() else 0,
        sha256=parse_sha256_header(digests) if "content-digest" in headers else None,
    )


def parse_offset(headers: Headers) -> int:
    """Parse the header Upload-Offset; raises InvalidRequest."""
    return parse_size(headers, "upload-offset")


def parse_size(headers: Headers, name: str) -> int:
    """Parse a header with a number of bytes.

    Raises:
        InvalidRequest: unless it occurs once and is a whole number.
    """
    values = headers.getlist(name)
    if len(values) != 1 or _WHOLE_NUMBER.fullmatch(values[0]) is None:
        raise InvalidRequest.at(f"/header/{name}", _NUMBERS[name])
    return int(values[0])


def parse_media_type(value: str) -> str:
    """Parse a Content-Type; the default parameters charset=utf-8 and header=present are dropped.

    Raises:
        UnsupportedMediaType: for another media type, encoding or parameter.
    """
    message = Message()
    message["content-type"] = value
    media_type = message.get_content_type() if value else ""
    if media_type not in MEDIA_TYPES:
        raise UnsupportedMediaType(f"Send the table as one of {', '.join(sorted(MEDIA_TYPES))}.")
    for name, parameter in message.get_params(failobj=[])[1:]:
        if media_type != CSV or parameter.lower() not in _PARAMETERS.get(name.lower(), frozenset()):
            raise UnsupportedMediaType("Omit the parameters of the media type; a table is UTF-8, and CSV has a header.")
    return media_type
