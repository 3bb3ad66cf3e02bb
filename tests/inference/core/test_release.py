"""Reliability of releases: its grades, reasons and rules."""

import re
from typing import Any

import numpy as np
import pytest

from app.inference.core import reasons
from app.inference.core.reasons import CATALOGUE, Reason
from app.inference.core.release import CALIBRATED, Grade, Pseudocoreset, Reliability, judge

LONGEST_SENTENCE = 25
"""In words."""


def test_the_worst_finding_decides_the_grade() -> None:
    findings = [
        (reasons.HIDDEN_ROWS, Grade.CENTRE_ONLY),
        (reasons.NOISE_DOMINATES, Grade.NOT_USABLE),
        (reasons.POINTS_DIFFER, Grade.CENTRE_ONLY),
        (reasons.HIDDEN_ROWS, Grade.CENTRE_ONLY),
    ]
    found = judge(findings)
    assert found.grade is Grade.NOT_USABLE
    assert found.reasons == (reasons.HIDDEN_ROWS, reasons.NOISE_DOMINATES, reasons.POINTS_DIFFER)
    assert not found.is_calibrated
    assert judge(findings[2:]).grade is Grade.CENTRE_ONLY


def test_a_release_without_findings_is_calibrated() -> None:
    assert judge([]) == CALIBRATED
    assert CALIBRATED.is_calibrated
    remark = judge([(reasons.RARE_OUTCOME, Grade.CALIBRATED)])
    assert remark.is_calibrated
    assert remark.reasons == (reasons.RARE_OUTCOME,)


@pytest.mark.parametrize("grade", [Grade.CENTRE_ONLY, Grade.NOT_USABLE])
def test_a_grade_below_calibrated_needs_a_reason(grade: Grade) -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Reliability(grade)


@pytest.mark.parametrize(
    "reason", [Reason("invented", "A row has the value 7."), Reason("misfit", "A row has the value 7.")]
)
def test_a_reason_outside_the_catalogue_is_refused(reason: Reason) -> None:
    """W3: no text that depends on rows can be published as a reason."""
    with pytest.raises(ValueError, match="catalogue"):
        Reliability(Grade.CENTRE_ONLY, (reason,))


def test_a_calibrated_release_states_its_doubt() -> None:
    """W16: intervals that leave out unknown noise are not called calibrated."""
    fields: dict[str, Any] = {"u": np.ones((1, 1)), "y": None, "weight": np.ones(1), "design": ()}
    with pytest.raises(ValueError, match="doubt"):
        Pseudocoreset(**fields, reliability=CALIBRATED)
    assert Pseudocoreset(**fields, doubt=np.zeros((1, 1)), reliability=CALIBRATED).reliability is CALIBRATED
    unknown = judge([(reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY)])
    assert Pseudocoreset(**fields, reliability=unknown).doubt is None


@pytest.mark.parametrize("reason", CATALOGUE.values(), ids=CATALOGUE)
def test_reasons_are_short_sentences_with_a_remedy(reason: Reason) -> None:
    """The first sentence is the meaning, the last one a remedy: a command."""
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+|[a-z]+", reason.code)
    sentences = re.split(r"(?<=\.) ", reason.words)
    assert len(sentences) >= 2
    assert all(sentence.endswith(".") and len(sentence.split()) <= LONGEST_SENTENCE for sentence in sentences)
    assert sentences[-1].split()[0] in {"Use", "Request", "Declare", "Add", "Check", "State"}
