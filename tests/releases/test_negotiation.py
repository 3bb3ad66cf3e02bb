"""Content negotiation, preconditions and ranges, against RFC 9110 and naive implementations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import NotAcceptable
from app.releases.http.formats import MEDIA_TYPES
from app.releases.http.negotiation import (
    Slice,
    Unsatisfiable,
    choose,
    choose_range,
    is_not_modified,
    precondition_holds,
)

ETAG = '"abc"'


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, "json"),
        ("", "json"),
        ("*/*", "json"),
        ("text/csv", "csv"),
        ("TEXT/CSV", "csv"),
        ("text/*", "csv"),
        ("application/*", "json"),
        ("application/x-npz", "npz"),
        ("application/json;q=0.1, text/csv;q=0.2", "csv"),
        ("application/json;q=0, */*", "csv"),
        ("*/*;q=0.1, application/vnd.apache.parquet", "parquet"),
        ("text/html, application/xhtml+xml, */*;q=0.8", "json"),
        ("text/csv;q=nonsense, application/x-npz;q=0.001", "npz"),
        ("application/json;q=0.5;level=1, text/csv; q = 0.4", "json"),
    ],
)
def test_the_offer_with_the_highest_quality_is_chosen(accept: str | None, expected: str) -> None:
    assert choose(accept, MEDIA_TYPES) == expected


@pytest.mark.parametrize(
    "accept", ["text/html", "*/*;q=0", "image/*", "application/json;q=0, application/*;q=0.0, text/csv;q=0"]
)
def test_accept_without_any_offer_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        choose(accept, MEDIA_TYPES)


@pytest.mark.parametrize(
    ("header", "matches"),
    [
        (None, False),
        ("*", True),
        ('"abc"', True),
        ('W/"abc"', True),
        ('"x", "abc"', True),
        ('"abcd"', False),
        ("abc", False),
    ],
)
def test_conditions_compare_weakly(header: str | None, matches: bool) -> None:
    assert is_not_modified(header, ETAG) is matches


@pytest.mark.parametrize(
    ("header", "holds"),
    [
        (None, True),
        ("*", True),
        ('"abc"', True),
        ('"x", "abc"', True),
        ('W/"abc"', False),
        ('"x"', False),
        ("abc", False),
    ],
)
def test_preconditions_compare_strongly(header: str | None, holds: bool) -> None:
    assert precondition_holds(header, ETAG) is holds


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", Slice(0, 0)),
        ("bytes=2-", Slice(2, 9)),
        ("bytes=2-100", Slice(2, 9)),
        ("bytes=-3", Slice(7, 9)),
        ("bytes=-100", Slice(0, 9)),
        ("Bytes=1-2", Slice(1, 2)),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("rows=0-1", None),
        ("bytes=-", None),
        ("bytes=a-b", None),
    ],
)
def test_single_ranges_are_served_and_others_ignored(header: str | None, expected: Slice | None) -> None:
    assert choose_range(header, None, ETAG, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-12", "bytes=-0"])
def test_a_range_without_a_byte_is_unsatisfiable(header: str) -> None:
    with pytest.raises(Unsatisfiable):
        choose_range(header, None, ETAG, 10)


def test_a_range_for_another_representation_is_ignored() -> None:
    assert choose_range("bytes=0-1", ETAG, ETAG, 10) == Slice(0, 1)
    for other in ('"xyz"', f"W/{ETAG}", "Wed, 21 Oct 2015 07:28:00 GMT"):
        assert choose_range("bytes=0-1", other, ETAG, 10) is None


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_a_range_equals_python_slicing(first: int, last: int, length: int) -> None:
    content = bytes(range(length))
    try:
        part = choose_range(f"bytes={first}-{last}", None, ETAG, length)
    except Unsatisfiable:
        assert content[first : last + 1] == b""
        return
    if part is not None:
        assert content[part.first : part.last + 1] == content[first : last + 1] != b""
