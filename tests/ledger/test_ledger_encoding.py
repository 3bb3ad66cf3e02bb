"""What is hashed is RFC 8785's form, however it is made."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.integrity.encoding import canonical, pack, packed_once, unpack
from tests.factories.json_values import JSON_VALUES


@given(JSON_VALUES)
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
