"""Headers of the tus protocol for resumable uploads, version 1.0.0 (https://tus.io/protocols/resumable-upload).

Supported: the core protocol, creation, creation-defer-length, expiration and termination. Not supported: creation with
upload, concatenation, and checksum. The extension checksum would need SHA-1 and the status 460; clients can send
Content-Digest instead.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from email.utils import format_datetime
from typing import Final

from starlette.datastructures import Headers

from app.datasets.uploads import announcements
from app.datasets.uploads.models import Upload
from app.errors import InvalidRequest, PreconditionFailed, UnsupportedMediaType

VERSION: Final = "1.0.0"
PART_MEDIA_TYPE: Final = "application/offset+octet-stream"
_EXTENSIONS: Final = "creation,creation-defer-length,expiration,termination"
_METADATA_PAIR: Final = re.compile(r"([\x21-\x2b\x2d-\x7e]+)(?: ([A-Za-z0-9+/]+={0,2})?)?", re.ASCII)
_UNKNOWN_TYPES: Final = frozenset({"", "application/octet-stream"})
"""Media types that browsers send for files of a type that they do not know."""
_SUFFIXES: Final[Mapping[str, str]] = {
    ".csv": announcements.CSV,
    ".parquet": announcements.PARQUET,
    ".arrows": announcements.ARROW,
}


class UnsupportedVersion(PreconditionFailed):
    """The client uses another version of tus; the header Tus-Version lists the supported ones."""

    default = f"This server supports version {VERSION} of the tus protocol only."

    def __init__(self) -> None:
        super().__init__()
        self.headers = {"Tus-Version": VERSION}


def is_tus(headers: Headers) -> bool:
    """Whether the request follows the tus protocol."""
    return "tus-resumable" in headers


def check_request(headers: Headers) -> None:
    """Check the version, and refuse extensions that would otherwise be ignored silently.

    Raises:
        UnsupportedVersion: for any version but 1.0.0.
        InvalidRequest: for the extensions concatenation and checksum.
    """
    if not is_tus(headers):
        return
    if headers.getlist("tus-resumable") != [VERSION]:
        raise UnsupportedVersion
    if "upload-concat" in headers:
        raise InvalidRequest.at("/header/upload-concat", "Uploads cannot be concatenated; send the file as one upload.")
    if "upload-checksum" in headers:
        raise InvalidRequest.at("/header/upload-checksum", "Send the digest of a part as Content-Digest.")


def check_part_type(headers: Headers) -> None:
    """Check the media type of a part that a tus client sends.

    Raises:
        UnsupportedMediaType: for any other than ``application/offset+octet-stream``.
    """
    if is_tus(headers) and headers.get("content-type", "").strip().lower() != PART_MEDIA_TYPE:
        raise UnsupportedMediaType(f"Send the bytes of a part as {PART_MEDIA_TYPE}.")


def parse_creation(headers: Headers) -> dict[str, str | int]:
    """Parse the headers of a creation request into the equivalent JSON body.

    Raises:
        InvalidRequest: for malformed headers, and for a length that is neither given nor deferred.
        UnsupportedMediaType: the metadata do not name the format of a table.
    """
    length = parse_length(headers)
    deferred = headers.getlist("upload-defer-length")
    if deferred not in ([], ["1"]):
        raise InvalidRequest.at("/header/upload-defer-length", "The header Upload-Defer-Length has the value 1.")
    if (length is None) != bool(deferred):
        raise InvalidRequest.at("/header/upload-length", "Send either Upload-Length or 'Upload-Defer-Length: 1'.")
    media_type = _choose_media_type(_parse_metadata(",".join(headers.getlist("upload-metadata"))))
    return {"media_type": media_type} | ({} if length is None else {"length": length})


def parse_length(headers: Headers) -> int | None:
    """Parse the header Upload-Length, if there is one; raises InvalidRequest."""
    return announcements.parse_size(headers, "upload-length") if "upload-length" in headers else None


def describe_server(max_bytes: int) -> dict[str, str]:
    """Make the headers of an answer to OPTIONS.

    Args:
        max_bytes: the largest size of an upload.
    """
    return {"Tus-Version": VERSION, "Tus-Extension": _EXTENSIONS, "Tus-Max-Size": str(max_bytes)}


def describe_upload(upload: Upload) -> dict[str, str]:
    """Make the headers that describe an upload. Of its metadata only the format is stored."""
    length = {"Upload-Defer-Length": "1"} if upload.length is None else {"Upload-Length": str(upload.length)}
    return {
        "Upload-Offset": str(upload.received),
        "Upload-Expires": format_datetime(upload.expires_at, usegmt=True),
        "Upload-Metadata": f"filetype {base64.b64encode(upload.media_type.encode()).decode()}",
    } | length


def _parse_metadata(header: str) -> dict[str, bytes]:
    """Parse pairs of a key and a base64 value; each key occurs once."""
    metadata: dict[str, bytes] = {}
    for pair in header.split(",") if header.strip() else ():
        match = _METADATA_PAIR.fullmatch(pair.strip(" "))
        if match is None or match[1] in metadata:
            raise _malformed_metadata()
        try:
            metadata[match[1]] = base64.b64decode(match[2] or "", validate=True)
        except binascii.Error:
            raise _malformed_metadata() from None
    return metadata


def _choose_media_type(metadata: Mapping[str, bytes]) -> str:
    """Choose the declared media type, or else the type of the suffix. The file name is not stored."""
    try:
        media_type, name = (metadata.get(key, b"").decode() for key in ("filetype", "filename"))
    except UnicodeDecodeError:
        raise _malformed_metadata() from None
    if media_type not in _UNKNOWN_TYPES:
        return media_type
    for suffix, known in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return known
    raise UnsupportedMediaType(
        "Name the format in Upload-Metadata: 'filetype' with a media type of a table, or 'filename' with the suffix "
        f"{', '.join(_SUFFIXES)}."
    )


def _malformed_metadata() -> InvalidRequest:
    return InvalidRequest.at(
        "/header/upload-metadata",
        "The header Upload-Metadata has the form 'key base64,key base64', with each key once and values in UTF-8.",
    )
