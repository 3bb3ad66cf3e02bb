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
from app.inference.audit.scenarios import Scenario, list_scenarios
from app.inference.audit.subjects import Subject, compute_contribution, compute_sum, list_subjects
from app.inference.audit.transcripts import find_clip, run_once
from app.inference.registry import list_methods
from app.privacy.audit.bounds import bound_family
from app.privacy.audit.composed import compute_separation
from app.privacy.audit.guesses import bound_epsilon_by_guesses
from app.privacy.audit.laws import AnswerLaw

EVERY = pytest.mark.parametrize("scenario", list_scenarios(), ids=lambda scenario: scenario.name)
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


def test_w12_every_private_method_has_a_scenario() -> None:
    """W12: a new private method needs an audited run; methods with ``beta`` need one with it, too."""
    private = [method for method in list_methods() if method.private]
    scenarios = list_scenarios()
    assert {each.method for each in scenarios} == {method.id for method in private}, "W12: a method has no audit"
    robust = {method.id for method in private if "beta" in {knob.name for knob in method.parameters}}
    assert {each.method for each in scenarios if "beta" in each.parameters} == robust, "W12: beta has no audit"


@pytest.mark.long
@EVERY
def test_whole_runs_are_gaussian_with_at_most_the_claimed_mean(scenario: Scenario) -> None:
    """W4, W12: all answers of a run, with the canary and without; fails by chance about once in 10**9."""
    runs = 2
    for present in (False, True):
        found = [run_once(scenario, 8.0, present=present) for _ in range(runs)]
        assert all(each.reached <= each.claim * (1 + 1e-12) for each in found), "W5: a contribution exceeds its bound"
        residuals = [each.statistic - present * each.reached for each in found]
        assert float(np.sum(np.square(residuals))) < stats.chi2.isf(CHANCE, runs), "W4, W7: answers lack planned noise"
        assert min(each.reached / each.claim for each in found) > 0.9, "the canary is not the worst case"


@EVERY
def test_the_claim_of_a_run_is_the_separation_of_its_events(scenario: Scenario) -> None:
    assert compute_separation(scenario.make_plan(3.0).events) == pytest.approx(3.0)


@EVERY
def test_tables_with_and_without_the_canary_are_neighbours(scenario: Scenario) -> None:
    """The neighbour of zero-out: one unit is null, and all other units are the same."""
    here, gone = (scenario.make_table(present=flag) for flag in (True, False))
    units = np.arange(here.slots)
    for name, values in here.gather(units).items():
        other = gone.gather(units)[name].reshape(here.slots, -1)
        differs = np.flatnonzero((values.reshape(here.slots, -1) != other).any(axis=1))
        assert set(differs) <= {here.place}
        assert not other[here.place].any()


def test_the_sum_of_a_table_is_that_of_the_others_plus_the_canary() -> None:
    """The attacker subtracts the contributions of others exactly."""
    scenario = next(each for each in list_scenarios() if each.others)
    subject = next(each for each in list_subjects() if each.name == "mean_sum")
    table = scenario.make_table(present=True)
    others = compute_sum(scenario.spec, subject.query, table.without())
    canary = compute_contribution(scenario.spec, subject.query, table)
    assert np.linalg.norm(others) > 0
    assert np.linalg.norm(canary) == pytest.approx(subject.clip, rel=1e-3)
    np.testing.assert_allclose(compute_sum(scenario.spec, subject.query, table), others + canary, rtol=1e-12)


@pytest.mark.parametrize("subject", list_subjects(), ids=lambda subject: subject.name)
def test_the_clip_of_a_query_is_the_subjects(subject: Subject) -> None:
    assert find_clip(subject.query) == subject.clip
