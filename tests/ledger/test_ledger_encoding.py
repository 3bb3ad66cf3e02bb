"""What is hashed is RFC 8785's form, however it is made."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.encoding import canonical, pack, packed_once, unpack

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_the_quick_way_says_what_the_library_says(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [float("nan"), 2**53, {"a": {"b": float("inf")}}, {1: 2}, ["\ud800"], object()])
def test_what_json_cannot_say_has_no_form(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical(value)


@given(st.lists(st.integers(0, 2**80)).map(tuple))
def test_integers_of_any_size_come_back(numbers: tuple[int, ...]) -> None:
    assert unpack(pack(numbers)) == numbers
    assert packed_once(numbers) == pack(numbers)
