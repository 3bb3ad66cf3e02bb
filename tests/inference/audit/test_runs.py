"""Audits of whole runs, and of one run with many canaries."""

import numpy as np
import pytest
from scipy import stats

from app.inference.audit.one_run import (
    ask_about_canaries,
    count_canary_positives,
    count_correct_guesses,
    draw_canary_sample,
    score_one_run,
)
from app.inference.audit.subjects import COLUMNS, Subject, list_subjects
from app.inference.audit.tables import make_facts
from app.inference.audit.transcripts import find_clip, make_method_plan, run_once
from app.inference.methods.vips.schedule import FIXED_SHARE, LENGTHS_SHARE
from app.inference.registry import list_methods
from app.privacy.audit.bounds import bound_family
from app.privacy.audit.composed import compute_separation
from app.privacy.audit.guesses import bound_epsilon_by_guesses
from app.privacy.audit.laws import AnswerLaw

METHODS = [method.id for method in list_methods() if method.private]
CHANCE = 1e-9


@pytest.mark.parametrize("claim", [AnswerLaw(2.0), AnswerLaw(0.5, 0.1)])
def test_each_canary_has_the_claimed_law_of_its_own(claim: AnswerLaw) -> None:
    """W4, W5, W7: 200 canaries, 10 queries; the probability integral transform is uniform."""
    sample = draw_canary_sample(claim, 10)
    for present in (False, True):
        answers = sample.answers[sample.present == present]
        uniform = claim.exceed(answers, present=present)
        assert stats.kstest(uniform, "uniform").pvalue > CHANCE


def test_canaries_do_not_disturb_each_other() -> None:
    """Correlations of 40 canaries over 400 answers, with subsampling: Fisher's transform and Bonferroni."""
    answers = ask_about_canaries(AnswerLaw(0.05, 0.3), np.ones(40), 400)
    correlations = np.asarray(np.corrcoef(answers.T))[np.triu_indices(40, 1)]
    most = float(np.max(np.abs(np.arctanh(correlations)))) * np.sqrt(400 - 3)
    assert 2 * stats.norm.sf(most) * len(correlations) > CHANCE


def test_w12_guesses_in_one_run_stay_below_the_claim() -> None:
    """W12: 400 canaries; the bound shows a part of epsilon, and never more than epsilon."""
    claim = AnswerLaw(2.0)
    correct = count_correct_guesses(score_one_run(claim, 16, 400), 100)
    found = bound_epsilon_by_guesses(400, 100, correct, 1e-6, 0.999)
    assert 0.7 < found < AnswerLaw(0.5).compute_epsilon(1e-6)  # sixteen answers are one with a quarter of the noise


def test_positives_of_many_canaries_stay_below_the_claim() -> None:
    """W12: 40,000 answers at a rate at which inclusion is visible show most of the rate, and not more."""
    claim = AnswerLaw(0.05, 0.3)
    counts, evidence = count_canary_positives(claim, 40_000, 1 - CHANCE)
    assert 0.85 * claim.rate < bound_family(counts, claim, 1 - CHANCE) <= claim.rate
    assert evidence < -np.log(CHANCE)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_whole_runs_are_gaussian_with_at_most_the_claimed_mean(method: str) -> None:
    """W4, W12: all answers of a run, with the canary and without; fails by chance about once in 10**9."""
    runs = 3
    for present in (False, True):
        found = [run_once(method, 1.0, 8, present=present) for _ in range(runs)]
        assert all(each.reached <= each.claim * (1 + 1e-12) for each in found), "W5: a contribution exceeds its bound"
        residuals = [each.statistic - present * each.reached for each in found]
        assert float(np.sum(np.square(residuals))) < stats.chi2.isf(CHANCE, runs)
        assert present or min(each.reached / each.claim for each in found) > 0.3


@pytest.mark.parametrize("method", METHODS)
def test_the_claim_of_a_run_is_the_separation_of_its_events(method: str) -> None:
    plan = make_method_plan(method, make_facts(COLUMNS, 20, 1), 3.0, 12)
    repeated = 1 - LENGTHS_SHARE - FIXED_SHARE if method == "vips" else 1.0
    expected = 1 / 3.0 if method in {"dp-psvi-surrogate", "dp-groups"} else np.sqrt(12 / repeated) / 3.0
    assert compute_separation(plan.events) == pytest.approx(expected)


@pytest.mark.parametrize("subject", list_subjects(), ids=lambda subject: subject.name)
def test_the_clip_of_a_query_is_the_subjects(subject: Subject) -> None:
    assert find_clip(subject.query) == subject.clip
