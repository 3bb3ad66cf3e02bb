"""Laws of aligned answers and bounds on privacy losses, against second derivations."""

import math

import numpy as np
import pytest
from scipy import stats

from app.privacy.audit.bounds import (
    Counts,
    bound_epsilon,
    bound_epsilon_by_shape,
    bound_law,
    bound_mean,
    bound_proportion,
    bound_rate,
    bound_separation,
    choose_threshold,
    count_positives,
    is_refuted,
)
from app.privacy.audit.composed import ComposedTradeOff, compute_separation
from app.privacy.audit.laws import AnswerLaw
from app.privacy.events import GaussianEvent, PoissonSampledEvent, SelfComposedEvent
from app.privacy.risk import compute_gaussian_true_positives
from tests.privacy_core.divergences import gaussian_delta, sampled_delta

LAWS = [AnswerLaw(1.0), AnswerLaw(5.0), AnswerLaw(1.0, 0.02), AnswerLaw(2.0, 0.3), AnswerLaw(0.7, 0.5, 0.6)]
DELTA, CONFIDENCE = 1e-6, 0.999
EVERY = pytest.mark.parametrize("law", LAWS)


@EVERY
@pytest.mark.parametrize("false_positives", [1e-5, 0.01, 0.4, 0.99])
def test_power_is_that_of_the_threshold_test(law: AnswerLaw, false_positives: float) -> None:
    threshold = law.noise * stats.norm.isf(false_positives)
    assert law.exceed(threshold, present=False) == pytest.approx(false_positives)
    assert law.bound_power(false_positives) == pytest.approx(law.exceed(threshold, present=True))
    assert law.bound_power(0.0) == 0
    assert law.bound_power(1.0) == 1
    if law.rate == 1:
        assert law.bound_power(false_positives) == pytest.approx(
            compute_gaussian_true_positives(false_positives, law.separation)
        )


@EVERY
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 5.0])
def test_deltas_are_those_of_the_closed_forms_and_of_quadrature(law: AnswerLaw, epsilon: float) -> None:
    """The densities are integrated in both directions, without the formula for the threshold."""
    x = np.linspace(-12 * law.noise, 12 * law.noise + law.shift, 400_001)
    absent, present = (np.exp(law.compute_log_density(x, np.full(len(x), flag))) for flag in (0.0, 1.0))
    odds, step = math.exp(epsilon), float(x[1] - x[0])
    found = [step * np.maximum(0, p - odds * a).sum() for p, a in ((present, absent), (absent, present))]
    assert law.compute_delta(epsilon) == pytest.approx(max(found), rel=1e-4, abs=1e-12)
    known = (
        gaussian_delta(law.noise / law.shift, epsilon)
        if law.rate == 1
        else sampled_delta(law.rate, law.noise / law.shift, epsilon)
    )
    assert law.compute_delta(epsilon) == pytest.approx(float(known), rel=1e-6, abs=1e-14)


@EVERY
def test_an_epsilon_has_its_delta(law: AnswerLaw) -> None:
    assert law.compute_delta(law.compute_epsilon(DELTA)) == pytest.approx(DELTA)
    assert law.compute_epsilon(0.99) == 0
    with pytest.raises(ValueError, match="delta"):
        law.compute_epsilon(0.0)


def test_thresholds_have_their_log_ratio() -> None:
    for law in LAWS:
        assert law.compute_log_ratio(law.find_threshold(0.7)) == pytest.approx(0.7)
    assert AnswerLaw(1.0, 0.02).find_threshold(-0.03) == -math.inf
    assert AnswerLaw(1e-3, 0.02).compute_delta(800.0) == pytest.approx(0.02)


@pytest.mark.parametrize("numbers", [(0.0,), (math.inf,), (1.0, 0.0), (1.0, 1.1), (1.0, 1.0, 0.0), (math.nan,)])
def test_a_law_out_of_range_is_refused(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="noise and shift"):
        AnswerLaw(*numbers)


def test_bounds_on_a_proportion_fail_as_rarely_as_stated() -> None:
    """Exact coverage: the sum of binomial probabilities at which a bound fails."""
    trials, error = 60, 0.01
    bounds = [bound_proportion(k, trials, error) for k in range(trials + 1)]
    for p in (0.01, 0.2, 0.5, 0.93):
        mass = stats.binom.pmf(np.arange(trials + 1), trials, p)
        for side in (0, 1):
            fails = [lower > p if side == 0 else upper < p for lower, upper in bounds]
            assert float(mass[fails].sum()) <= error
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 1
    assert bounds[0][1] == pytest.approx(1 - error ** (1 / trials))  # the closed form at no success
    assert bound_proportion(0, 0, error) == (0, 1)
    with pytest.raises(ValueError, match="trials"):
        bound_proportion(2, 1, error)


@pytest.mark.parametrize(
    ("claim", "least"), [(AnswerLaw(1.0), 0.98), (AnswerLaw(5.0), 0.95), (AnswerLaw(1.0, 0.02), 0.6)]
)
def test_expected_bounds_are_close_to_the_claim_and_below_it(claim: AnswerLaw, least: float) -> None:
    """Power: the share of the claimed epsilon that a million answers in each world show."""
    n = 1_000_000

    def goal(counts: Counts) -> float:
        return bound_epsilon_by_shape(counts, claim, DELTA, CONFIDENCE)

    threshold = choose_threshold(claim, n, n, goal)
    p, a = (float(claim.exceed(threshold, present=present)) for present in (True, False))
    counts = Counts(p * n, n, a * n, n)
    assert least < goal(counts) / claim.compute_epsilon(DELTA) < 1
    assert not is_refuted(counts, claim, CONFIDENCE)
    assert is_refuted(counts, AnswerLaw(claim.noise * 1.6, claim.rate), CONFIDENCE)
    assert bound_epsilon(counts, DELTA, CONFIDENCE) < goal(counts)


def test_epsilon_alone_is_far_below_the_claim() -> None:
    """One point of the curve cannot show the claimed epsilon at a small delta."""
    claim, n = AnswerLaw(1.0), 1_000_000

    def goal(counts: Counts) -> float:
        return bound_epsilon(counts, DELTA, CONFIDENCE)

    threshold = choose_threshold(claim, n, n, goal)
    expected = Counts(
        float(claim.exceed(threshold, present=True)) * n, n, float(claim.exceed(threshold, present=False)) * n, n
    )
    assert 0.4 < goal(expected) / claim.compute_epsilon(DELTA) < 0.7


def test_a_bound_within_the_family_is_where_the_claim_begins_to_hold() -> None:
    """A second derivation: bisection on whether a member of the family is refuted."""
    counts = Counts(700, 1000, 330, 1000)
    low, high = 1e-3, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(counts, AnswerLaw(1 / middle), CONFIDENCE) else (low, middle)
    assert bound_separation(counts, CONFIDENCE) == pytest.approx(low, rel=1e-6)
    low, high = 1e-3, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(counts, AnswerLaw(0.8, middle), CONFIDENCE) else (low, middle)
    assert bound_rate(counts, 0.8, CONFIDENCE) == pytest.approx(low, rel=1e-6)


def test_counts_without_positives_bound_nothing() -> None:
    nothing = Counts(0, 50, 0, 50)
    for claim in (AnswerLaw(1.0), AnswerLaw(1.0, 0.1)):
        assert bound_law(nothing, claim, CONFIDENCE) is None
        assert bound_epsilon_by_shape(nothing, claim, DELTA, CONFIDENCE) == 0
    assert bound_epsilon(nothing, DELTA, CONFIDENCE) == 0
    assert bound_rate(Counts(5, 5, 5, 5), 1.0, CONFIDENCE) == 0


def test_positives_are_counted_in_each_world() -> None:
    counts = count_positives(np.array([0.2, 0.9, 0.7, -1.0]), np.array([1, 1, 0, 0]), 0.5)
    assert counts == Counts(1, 2, 1, 2)
    assert counts + counts == Counts(2, 4, 2, 4)


def test_a_bound_on_a_mean_fails_as_rarely_as_stated() -> None:
    """Of 4,000 bounds at 95 %, 200 fail on average; fewer than 120 or more than 280 would be a chance of 10**-8."""
    rng = np.random.default_rng(0)
    fails = sum(bound_mean(rng.standard_normal(7) + 1, rng.standard_normal(5), 0.95) > 1 for _ in range(4000))
    assert 120 < fails < 280


def test_true_claims_are_refuted_no_more_often_than_stated() -> None:
    """Exact: both error rates are at most half of the permitted error, for one fixed threshold."""
    claim, n = AnswerLaw(1.0), 40
    p, a = (float(claim.exceed(0.5, present=present)) for present in (True, False))
    wrong = 0.0
    for true in range(n + 1):
        for false in range(n + 1):
            if is_refuted(Counts(true, n, false, n), claim, 0.9):
                wrong += stats.binom.pmf(true, n, p) * stats.binom.pmf(false, n, a)
    assert 0 < wrong <= 0.1


def test_full_batch_events_compose_to_one_gaussian() -> None:
    events = (GaussianEvent(2.0), SelfComposedEvent(GaussianEvent(4.0), 12))
    assert compute_separation(events) == pytest.approx(1.0)
    found, expected = ComposedTradeOff(events), AnswerLaw(1.0)
    assert found.compute_epsilon(DELTA) == pytest.approx(expected.compute_epsilon(DELTA), rel=1e-4)
    for rate in (0.001, 0.1, 0.6):
        assert expected.bound_power(rate) <= found.bound_power(rate) <= expected.bound_power(rate) + 1e-3
    with pytest.raises(ValueError, match="full-batch"):
        compute_separation((PoissonSampledEvent(0.1, GaussianEvent(1.0)),))


@pytest.mark.parametrize("claim", [AnswerLaw(1.0, 0.02), AnswerLaw(2.0, 0.3)])
def test_privacy_loss_distributions_agree_with_the_closed_form(claim: AnswerLaw) -> None:
    """Two derivations of the curve of one sampled Gaussian event."""
    found = ComposedTradeOff((PoissonSampledEvent(claim.rate, GaussianEvent(claim.noise)),))
    for delta in (1e-3, 1e-6):
        expected = claim.compute_epsilon(delta)
        assert expected - 1e-9 <= found.compute_epsilon(delta) <= expected + 2e-3
    for rate, slack in ((0.001, 1e-4), (0.1, 2e-3), (0.6, 2e-2)):
        assert claim.bound_power(rate) - 1e-9 <= found.bound_power(rate) <= claim.bound_power(rate) + slack
