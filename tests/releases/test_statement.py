"""Statements are plain JSON, and their rules are short sentences."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import rfc8785

from app.errors import Internal
from app.inference.core import reasons
from app.inference.core.release import CALIBRATED, Grade, Posterior, Pseudocoreset, judge
from app.privacy.relation import IN_WORDS
from app.releases.statement import (
    CONDITIONS,
    MOST_STATED,
    NOISE_IN_WORDS,
    OF_TERMS,
    make_plain,
    make_posterior_json,
    make_reliability_json,
)

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
    assert make_plain(value) == expected
    assert json.loads(rfc8785.dumps(make_plain(value))) == expected


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Fraction(1, 3), object(), {1, 2}, [math.nan]])
def test_a_value_that_json_cannot_represent_is_refused(value: Any) -> None:
    with pytest.raises(Internal):
        make_plain(value)


@pytest.mark.parametrize("words", [CONDITIONS, CONDITIONS + OF_TERMS, IN_WORDS, NOISE_IN_WORDS])
def test_the_rules_of_a_certificate_are_short_sentences(words: str) -> None:
    """An auditor checks one sentence after the other."""
    assert words.endswith(".")
    assert [sentence for sentence in words.split(". ") if len(sentence.split()) > LONGEST_SENTENCE] == []


def test_the_conditions_name_every_declared_fact() -> None:
    facts = ("columns", "types", "bounds", "categories", "slots", "privacy unit")
    assert [fact for fact in facts if fact not in CONDITIONS] == []
    assert "conditional on schema facts that were not read off the rows" in CONDITIONS


def _points(**fields: Any) -> Pseudocoreset:
    return Pseudocoreset(np.ones((1, 1)), None, np.ones(1), (), **fields)


def test_reliability_is_stated_with_codes_and_words() -> None:
    found = judge([(reasons.FEW_ROWS, Grade.NOT_USABLE), (reasons.MISFIT, Grade.CENTRE_ONLY)])
    stated = make_reliability_json(_points(diagnostics={"trusted": False}, reliability=found))
    assert stated == {
        "reliability": {
            "grade": "not-usable",
            "reasons": [
                {"code": "few-rows", "words": reasons.FEW_ROWS.words},
                {"code": "misfit", "words": reasons.MISFIT.words},
            ],
        }
    }
    assert json.loads(rfc8785.dumps(stated)) == stated
    assert make_reliability_json(_points()) == {}


@pytest.mark.parametrize("trusted", [False, None, 1])
def test_trusted_that_contradicts_the_grade_is_refused(trusted: object) -> None:
    points = _points(diagnostics={"trusted": trusted}, doubt=np.zeros((1, 1)), reliability=CALIBRATED)
    with pytest.raises(Internal):
        make_reliability_json(points)


def test_a_large_covariance_is_in_the_belief_only() -> None:
    """The database stores the body in one column, and lists show it."""

    def stated(size: int, covariance: Any) -> dict[str, Any]:
        names = tuple(f"x{index}" for index in range(size))
        return make_posterior_json(_points(posterior=Posterior(names, np.zeros(size), covariance)))

    assert set(stated(MOST_STATED, np.eye(MOST_STATED))) == {"posterior"}
    assert stated(MOST_STATED + 1, np.eye(MOST_STATED + 1)) == {}
    assert set(stated(MOST_STATED + 1, np.ones(MOST_STATED + 1))) == {"posterior"}
