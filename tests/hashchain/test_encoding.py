"""The canonical form is that of RFC 8785."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given

from app.hashchain.encoding import canonicalise
from tests.factories.json_values import JSON_VALUES


@given(JSON_VALUES)
@pytest.mark.long
def test_canonical_form_equals_the_librarys(value: Any) -> None:
    assert canonicalise(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [float("nan"), 2**53, {"a": {"b": float("inf")}}, {1: 2}, ["\ud800"], object()])
def test_values_outside_json_are_refused(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonicalise(value)
