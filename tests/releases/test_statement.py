"""Statements are plain JSON, and their rules are short sentences."""

import json
import math
from fractions import Fraction
from typing import Any

import pytest
import rfc8785

from app.errors import Internal
from app.privacy.relation import IN_WORDS
from app.releases.statement import CONDITIONS, NOISE_IN_WORDS, plain

LONGEST_SENTENCE = 25
"""In words."""


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
def test_values_are_converted_to_plain_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert json.loads(rfc8785.dumps(plain(value))) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Fraction(1, 3), object(), {1, 2}, [math.nan]])
def test_a_value_that_json_cannot_represent_is_refused(value: Any) -> None:
    with pytest.raises(Internal):
        plain(value)


@pytest.mark.parametrize("words", [CONDITIONS, IN_WORDS, NOISE_IN_WORDS])
def test_the_rules_of_a_certificate_are_short_sentences(words: str) -> None:
    """An auditor checks one sentence after the other."""
    assert words.endswith(".")
    assert [sentence for sentence in words.split(". ") if len(sentence.split()) > LONGEST_SENTENCE] == []


def test_the_conditions_name_every_declared_fact() -> None:
    facts = ("columns", "types", "bounds", "categories", "slots", "privacy unit")
    assert [fact for fact in facts if fact not in CONDITIONS] == []
    assert "conditional on schema facts that were not read off the rows" in CONDITIONS
