"""Replies to requests for the points or the belief of a release.

A reply has status, headers and range, and not the bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.errors import NotFound, PreconditionFailed, RangeNotSatisfiable
from app.http.requests.digests import digest_header
from app.releases.http.formats import MEDIA_TYPES, STORED_NAMES, Part
from app.releases.http.negotiation import (
    Slice,
    Unsatisfiable,
    choose,
    choose_range,
    is_not_modified,
    precondition_holds,
)
from app.releases.models import Release

FOREVER: Final = "public, max-age=31536000, immutable"
"""``Cache-Control`` of a public release."""
KEYED: Final = "private, no-cache"
"""``Cache-Control`` of a release that only some API keys may read."""
Status = Literal[200, 206, 304]


class OutOfRange(RangeNotSatisfiable):
    """The requested range is not satisfiable; ``Content-Range`` states the length."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.headers = {"Content-Range": f"bytes */{length}"}


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The query parameter and headers that decide the reply; None for each that was not sent."""

    format: str | None = None
    accept: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    if_range: str | None = None
    range: str | None = None


@dataclass(frozen=True, slots=True)
class Representation:
    """A part of a release in one format; ``object`` is its name in the store."""

    object: str
    length: int
    etag: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply without its bytes.

    ``part`` is the range of bytes in the body. If it is None, the body is the whole representation, or empty for status
    304.
    """

    status: Status
    headers: Mapping[str, str]
    representation: Representation
    part: Slice | None = None


@dataclass(frozen=True, slots=True)
class Offers:
    """All representations of a part of a release, by format."""

    by_format: Mapping[str, Representation]

    @classmethod
    def of(cls, release: Release, part: Part) -> "Offers":
        """Find the representations of ``part`` of a release.

        Raises:
            NotFound: the release has no such part.
        """
        stored = STORED_NAMES[part].items()
        offers = {name: _representation(release, at) for name, at in stored if at in release.representations}
        if not offers:
            raise NotFound
        return cls(offers)

    def reply(self, read: ReadRequest) -> Reply:
        """Choose the reply to a GET. The reply to a HEAD is the same without ``range``.

        Raises:
            NotAcceptable: ``Accept`` allows no stored format.
            PreconditionFailed: ``If-Match`` does not contain the entity tag.
            OutOfRange: the requested range is not satisfiable.
        """
        offered = {name: MEDIA_TYPES[name] for name in self.by_format}
        chosen = self.by_format[read.format or choose(read.accept, offered)]
        if not precondition_holds(read.if_match, chosen.etag):
            raise PreconditionFailed
        if is_not_modified(read.if_none_match, chosen.etag):
            return Reply(304, _without(chosen.headers, "Content-Type"), chosen)
        try:
            part = choose_range(read.range, read.if_range, chosen.etag, chosen.length)
        except Unsatisfiable:
            raise OutOfRange(chosen.length) from None
        if part is None:
            return Reply(200, {**chosen.headers, "Content-Length": str(chosen.length)}, chosen)
        shown = {
            "Content-Length": str(part.last - part.first + 1),
            "Content-Range": f"bytes {part.first}-{part.last}/{chosen.length}",
        }
        return Reply(206, {**chosen.headers, **shown}, chosen, part)


def make_cache_control(release: Release) -> str:
    """Return the Cache-Control header of the release."""
    return FOREVER if release.public else KEYED


def _representation(release: Release, name: str) -> Representation:
    stored: Mapping[str, Any] = release.representations[name]
    media_type, etag = stored["media_type"], f'"{stored["sha256"]}"'
    headers = {
        "Content-Type": f"{media_type}; charset=utf-8" if media_type == "text/csv" else media_type,
        "ETag": etag,
        "Repr-Digest": digest_header(bytes.fromhex(stored["sha256"])),
        "Vary": "Accept" if release.public else "Accept, Authorization",
        "Cache-Control": make_cache_control(release),
        "Accept-Ranges": "bytes",
        "Content-Disposition": f'attachment; filename="{release.id}.{name}"',
    }
    return Representation(stored["object"], stored["length"], etag, headers)


def _without(headers: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key != name}
