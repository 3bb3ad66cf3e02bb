"""The page of the privacy audit: it shows the stored records, and its simulated answers have their law."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from app.inference.audit import report
from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.inference.audit.report import QUICK, SECTIONS, Record, list_tasks
from app.privacy.audit.bounds import Counts, bound_epsilon_by_shape
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.sequential import Alternative
from benchmarks import audit
from benchmarks.audit_page import expect_share, find_answers, render
from benchmarks.audit_summary import BEGIN, END, insert_summary, share_by_parts, summarise


def test_the_page_shows_the_stored_records() -> None:
    """No figure is typed by hand: the page is rendered from the records alone."""
    records = audit.read_records()
    assert records.keys() == {*SECTIONS, "detection"}
    assert audit.DOCUMENT.read_text() == render(records)
    page = audit.PROMISES.read_text()
    assert insert_summary(page, summarise(records)) == page


def test_the_parts_of_a_section_are_its_records() -> None:
    """Parts run in several processes. Together they are the whole section, of a quick audit too."""
    calls: list[tuple[object, ...]] = []

    def note(*arguments: object) -> Record:
        calls.append(arguments)
        return {"holds": True}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "audit_transcript", note)
        patch.setattr(report, "audit_release", note)
        patch.setattr(report, "audit_many_answers", note)
        for section in ("transcripts", "releases", "canaries"):
            calls.clear()
            whole = list(SECTIONS[section](QUICK))
            in_order = calls.copy()
            calls.clear()
            parts = [record for part in list_tasks(section, QUICK) for record in part()]
            assert (parts, calls) == (whole, in_order)
            assert audit.count_parts(section) == len(whole)
    assert [audit.count_parts(name) for name in ("mechanism", "detection")] == [1, 1]


def test_every_stored_claim_holds() -> None:
    """W12: a refuted claim cannot be committed."""
    assert all(record["holds"] for records in audit.read_records().values() for record in records)


def test_stored_bounds_follow_from_stored_counts() -> None:
    """W12: the raw counts are stored, so that every bound can be computed again."""
    for record in audit.read_records()["canaries"]:
        claim = AnswerLaw(record["noise"], record["rate"])
        found = bound_epsilon_by_shape(Counts(*record["counts"]), claim, DELTA, CONFIDENCE)
        assert found == pytest.approx(record["by_shape"], rel=1e-9)
        assert claim.compute_epsilon(DELTA) == pytest.approx(record["epsilon"], rel=1e-9)


def test_simulated_answers_have_the_law_of_the_break() -> None:
    """Fails by chance once in 10**9."""
    for _, _, truth in audit.list_gentle_breaks():
        if truth.outliers:
            continue
        answers, present = audit.draw_answers(np.random.default_rng(0), truth, 4000)
        for flag in (False, True):
            uniform = truth.law.exceed(answers[present == flag], present=flag)
            assert stats.kstest(uniform, "uniform").pvalue > 1e-9


def test_outliers_have_the_stated_share() -> None:
    truth = Alternative("", AnswerLaw(1.0), 0.01)
    answers, present = audit.draw_answers(np.random.default_rng(1), truth, 100_000)
    assert 350 < int((answers > 25).sum()) < 650
    assert not np.any(present[answers > 25] == 0)


def test_a_watch_without_an_alarm_is_infinite() -> None:
    claim = AnswerLaw(1.0)
    assert audit._watch(np.random.default_rng(2), claim, Alternative("", claim), 20_000) == math.inf


def test_records_are_plain_json() -> None:
    assert json.loads(audit.RECORDS.read_text()) == audit.read_records()


def test_the_summary_names_a_share_beyond_the_claim() -> None:
    """W12: one record beyond its claim is enough."""
    records = audit.read_records()
    assert "No share exceeds 100 %." in summarise(records)
    broken = records | {"transcripts": [*records["transcripts"], {"by_shape": 1.01, "epsilon": 1.0}]}
    assert "**A share exceeds 100 %.**" in summarise(broken)


def test_a_page_without_a_place_has_no_summary() -> None:
    page = f"a\n  {BEGIN}\n  old\n  {END}\nb\n"
    assert insert_summary(page, "new") == page.replace("old", "new")
    with pytest.raises(ValueError, match="no place"):
        insert_summary("a\n", "new")


def test_parts_show_nearly_all_of_an_exact_claim() -> None:
    """Expected counts of a hundred million answers; a smaller rate shows a smaller share."""
    many = 5e7

    def count(claim: AnswerLaw, threshold: float) -> list[float]:
        true, false = (float(claim.exceed(threshold, present=flag)) * many for flag in (True, False))
        return [true, many, false, many]

    record = {"noise": 2.0, "counts": count(AnswerLaw(2.0), 0.5)}
    for rate, least, most in ((report.RATE, 0.98, 1.0), (report.RATE / 2, 0.3, 0.6)):
        sampling = {"noise": 0.05, "counts": count(AnswerLaw(0.05, rate), 0.5)}
        assert least < share_by_parts(record, sampling) < most


def test_the_number_of_answers_shows_the_stated_share() -> None:
    claim = AnswerLaw(2.0)
    assert expect_share(claim, find_answers(claim, 0.9)) == pytest.approx(0.9, abs=1e-3)
