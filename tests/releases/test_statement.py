"""Statements are plain JSON that any RFC 8785 implementation reads back to the same value."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest
import rfc8785

from app.errors import Internal
from app.releases.statement import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**53 - 1, 2**53 - 1),
        (2**53, str(2**53)),
        (-(2**62), str(-(2**62))),
        (0.1, 0.1),
        ((1, [2.5, ("x",)]), [1, [2.5, ["x"]]]),
        ({"a": {"b": (None,)}}, {"a": {"b": [None]}}),
    ],
)
def test_values_become_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert json.loads(rfc8785.dumps(plain(value))) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Fraction(1, 3), object(), {1, 2}, [math.nan]])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(Internal):
        plain(value)
