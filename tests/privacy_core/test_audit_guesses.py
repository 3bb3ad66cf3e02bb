"""Guesses about many canaries: the bound in one run, and the evidence in several."""

import math

import numpy as np
import pytest
from scipy import stats

from app.privacy.audit.bounds import bound_proportion
from app.privacy.audit.guesses import bound_epsilon_by_guesses, compute_accuracy, compute_p_value, weigh_shares
from app.privacy.audit.laws import AnswerLaw


@pytest.mark.parametrize(("guesses", "correct"), [(100, 80), (500, 300), (40, 40)])
def test_without_delta_the_bound_is_that_of_a_proportion(guesses: int, correct: int) -> None:
    """A second derivation: the logit of a Clopper-Pearson bound."""
    lower = bound_proportion(correct, guesses, 1e-3)[0]
    found = bound_epsilon_by_guesses(2 * guesses, guesses, correct, 0.0, 0.999)
    assert found == pytest.approx(math.log(lower / (1 - lower)), rel=1e-6)


def test_randomised_response_is_refuted_as_rarely_as_stated() -> None:
    """Randomised response reaches the bound exactly, so its error rate can be summed."""
    epsilon, guesses = 1.0, 80
    p = 1 / (1 + math.exp(-epsilon))
    mass = stats.binom.pmf(np.arange(guesses + 1), guesses, p)
    refuted = [bound_epsilon_by_guesses(guesses, guesses, v, 0.0, 0.95) > epsilon for v in range(guesses + 1)]
    assert 0.01 < float(mass[refuted].sum()) <= 0.05


def test_leaks_of_probability_delta_are_covered() -> None:
    """Each canary is published with probability delta; otherwise there is nothing to see."""
    delta, canaries, v = 0.01, 100, 70
    published = stats.binom.pmf(np.arange(canaries + 1), canaries, delta)
    exact = sum(
        float(mass * stats.binom.sf(v - 1 - count, canaries - count, 0.5)) for count, mass in enumerate(published)
    )
    assert exact <= compute_p_value(canaries, canaries, v, 0.0, delta) < 1
    assert compute_p_value(canaries, canaries, v, 0.0, delta) > compute_p_value(canaries, canaries, v, 0.0, 0.0)


def test_guesses_by_chance_bound_nothing() -> None:
    assert bound_epsilon_by_guesses(100, 100, 52, 1e-6, 0.999) == 0
    assert compute_p_value(10, 5, 0, 1.0, 1e-6) == 1
    with pytest.raises(ValueError, match="guesses"):
        compute_p_value(10, 5, 6, 1.0, 1e-6)


def test_the_best_guess_is_as_often_correct_as_computed() -> None:
    """A second derivation: the likelihood ratio's threshold of a normal law is in the middle."""
    assert compute_accuracy(AnswerLaw(1.0)) == pytest.approx(stats.norm.cdf(0.5))
    claim = AnswerLaw(0.7, 0.3)
    threshold = claim.find_threshold(0.0)
    right = claim.exceed(threshold, present=True) + 1 - claim.exceed(threshold, present=False)
    assert compute_accuracy(claim) == pytest.approx(float(right) / 2)


@pytest.mark.parametrize("canaries", [1, 50])
def test_w12_evidence_of_a_true_claim_is_a_fair_bet(canaries: int) -> None:
    """W12: its expected value after a run is 1, also if all canaries of a run share one fate."""
    claim = AnswerLaw(1.0)
    p = compute_accuracy(claim)
    together = p * np.exp(weigh_shares(np.array([1.0]), claim)) + (1 - p) * np.exp(weigh_shares(np.array([0.0]), claim))
    assert together[0] == pytest.approx(1.0, rel=1e-12)
    correct = np.arange(canaries + 1)
    mass = stats.binom.pmf(correct, canaries, p)
    assert mass @ np.exp(weigh_shares(correct[:, None] / canaries, claim)[:, 0]) == pytest.approx(1.0, rel=1e-12)


def test_evidence_grows_from_run_to_run() -> None:
    """Two runs multiply, at each stake."""
    one, two = weigh_shares(np.array([1.0, 1.0]), AnswerLaw(1.0))
    assert one > 0
    assert two > 2 * one
    assert np.all(weigh_shares(np.zeros(3), AnswerLaw(1.0)) < 0)
