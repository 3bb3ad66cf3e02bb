"""Which representation a reader gets, and how much of it: RFC 9110 sections 12 to 14 on bytes that never change."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.errors import NotAcceptable

_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})-(\d{0,18})\s*", re.ASCII | re.IGNORECASE)
_QUALITY = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


class Unsatisfiable(Exception):
    """The range starts beyond the end of the representation."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Bytes ``first`` to ``last``, both included."""

    first: int
    last: int


def choose(accept: str | None, offers: Mapping[str, str]) -> str:
    """The name of the offer that ``accept`` likes best; the first of equals.

    Args:
        accept: the header, None where it was not sent.
        offers: name -> media type, in our order of preference.

    Raises:
        NotAcceptable: if it likes none.
    """
    ranges = _ranges(accept or "*/*")
    scored = [(_quality(media_type, ranges), name) for name, media_type in offers.items()]
    best, name = max(scored, key=lambda pair: pair[0])
    if best <= 0:
        raise NotAcceptable
    return name


def precondition_holds(if_match: str | None, etag: str) -> bool:
    """Whether the representation is the one that the reader insists on (strong comparison: weak tags never match)."""
    if if_match is None or if_match.strip() == "*":
        return True
    return etag in _TAG.findall(if_match)


def is_not_modified(if_none_match: str | None, etag: str) -> bool:
    """Whether the reader already holds the representation (weak comparison)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in [tag.removeprefix("W/") for tag in _TAG.findall(if_none_match)]


def requested_range(header: str | None, if_range: str | None, etag: str, length: int) -> Slice | None:
    """The single range to answer with 206, or None for the whole representation.

    Several ranges, another unit and malformed headers are ignored, as is a range that is meant for another
    representation (strong comparison; we send no dates, so a date never matches).

    Raises:
        Unsatisfiable: for a well-formed range with no byte inside.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not any(match.groups()) or (if_range is not None and if_range.strip() != etag):
        return None
    first, last = match.groups()
    if not first:
        if int(last) == 0 or length == 0:
            raise Unsatisfiable
        return Slice(max(0, length - int(last)), length - 1)
    if last and int(last) < int(first):
        return None
    if int(first) >= length:
        raise Unsatisfiable
    return Slice(int(first), min(int(last), length - 1) if last else length - 1)


def _ranges(accept: str) -> Sequence[tuple[str, float]]:
    """(media range, quality) in order; members that are not well-formed are left out."""
    found = []
    for member in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in member.split(";"))
        weights = [value.strip() for name, _, value in (p.partition("=") for p in parameters) if name.strip() == "q"]
        quality = weights[0] if weights else "1"
        if media_range and _QUALITY.fullmatch(quality):
            found.append((media_range, float(quality)))
    return found


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The weight of the most specific range that covers ``media_type``; 0 if none does."""
    family = media_type.partition("/")[0]
    for candidate in (media_type, f"{family}/*", "*/*"):
        weights = [quality for media_range, quality in ranges if media_range == candidate]
        if weights:
            return max(weights)
    return 0.0
