"""Content negotiation, preconditions and ranges (RFC 9110, sections 12 to 14) for immutable bytes."""

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
    """Choose the offer with the highest quality in ``accept``, and the first of equals.

    Args:
        accept: the header; None if it was not sent.
        offers: name -> media type, in the server's order of preference.

    Raises:
        NotAcceptable: the header accepts no offer.
    """
    ranges = _ranges(accept or "*/*")
    scored = [(_quality(media_type, ranges), name) for name, media_type in offers.items()]
    best, name = max(scored, key=lambda pair: pair[0])
    if best <= 0:
        raise NotAcceptable
    return name


def precondition_holds(if_match: str | None, etag: str) -> bool:
    """Return whether ``If-Match`` admits the representation (strong comparison: weak tags never match)."""
    if if_match is None or if_match.strip() == "*":
        return True
    return etag in _TAG.findall(if_match)


def is_not_modified(if_none_match: str | None, etag: str) -> bool:
    """Return whether the reader already has the representation (weak comparison)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in [tag.removeprefix("W/") for tag in _TAG.findall(if_none_match)]


def choose_range(header: str | None, if_range: str | None, etag: str, length: int) -> Slice | None:
    """Return the single range to answer with 206, or None for the whole representation.

    Several ranges, another unit and malformed headers are ignored. So is a range whose ``If-Range`` names another
    representation. The comparison is strong. The service sends no dates, so a date never matches.

    Raises:
        Unsatisfiable: the range is well-formed and contains no byte.
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
    """Parse ``Accept`` to (media range, quality) in order. Malformed members are ignored."""
    ranges = []
    for member in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in member.split(";"))
        weights = [value.strip() for name, _, value in (p.partition("=") for p in parameters) if name.strip() == "q"]
        quality = weights[0] if weights else "1"
        if media_range and _QUALITY.fullmatch(quality):
            ranges.append((media_range, float(quality)))
    return ranges


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """Return the quality of the most specific range that covers ``media_type``, or 0."""
    family = media_type.partition("/")[0]
    for candidate in (media_type, f"{family}/*", "*/*"):
        weights = [quality for media_range, quality in ranges if media_range == candidate]
        if weights:
            return max(weights)
    return 0.0
