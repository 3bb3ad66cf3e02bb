"""Odds and trade-off functions, against closed forms and against each other."""

import math
from statistics import NormalDist

import pytest

from app.privacy import risk
from app.privacy.accounting import INFINITE, ORDERS, compose_renyi, compute_cost
from app.privacy.events import GaussianEvent, PoissonSampledEvent, SelfComposedEvent

DELTA = 1e-6
RATES = (1e-4, 0.01, 0.3)


def test_odds_are_the_exponential_of_epsilon() -> None:
    assert risk.compute_odds(0) == 1
    assert risk.compute_odds(math.log(7)) == pytest.approx(7)
    assert risk.compute_odds(1000) == math.inf


@pytest.mark.parametrize("rate", RATES)
def test_no_privacy_loss_leaves_guessing(rate: float) -> None:
    assert risk.bound_true_positives(rate, 0, 0) == pytest.approx(rate)
    assert risk.compute_gaussian_true_positives(rate, 0) == pytest.approx(rate)
    assert risk.bound_true_positives_by_renyi(rate, [0] * len(ORDERS), ORDERS) == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_reaches_the_pure_bound(epsilon: float) -> None:
    """Randomised response has the trade-off function of pure epsilon at its corner."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert risk.bound_true_positives(1 - truth, epsilon, 0) == pytest.approx(truth)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("noise", [0.7, 3.0, 30.0])
def test_bounds_hold_for_the_gaussian_mechanism(rate: float, noise: float) -> None:
    """The exact curve lies below both bounds, which come from the accountant's own figures."""
    events = (GaussianEvent(noise),)
    exact = risk.compute_gaussian_true_positives(rate, 1 / noise)
    amounts = compose_renyi(events)
    assert rate < exact <= risk.bound_true_positives(rate, compute_cost(events, DELTA), DELTA)
    assert exact <= risk.bound_true_positives_by_renyi(rate, amounts, ORDERS)


def test_the_best_test_is_the_likelihood_ratio() -> None:
    """A threshold on one draw reaches the curve, by both distribution functions."""
    shift, threshold = 1.3, 2.0
    false_positives = 1 - NormalDist().cdf(threshold)
    true_positives = 1 - NormalDist(mu=shift).cdf(threshold)
    assert risk.compute_gaussian_true_positives(false_positives, shift) == pytest.approx(true_positives)


def test_full_batch_events_compose_to_one_shift() -> None:
    amounts = compose_renyi((GaussianEvent(3.0), SelfComposedEvent(GaussianEvent(5.0), 4)))
    assert risk.find_gaussian_shift(amounts, ORDERS) == pytest.approx(math.sqrt(1 / 9 + 4 / 25), rel=1e-6)


def test_sampled_events_have_no_gaussian_shift() -> None:
    amounts = compose_renyi((SelfComposedEvent(PoissonSampledEvent(0.1, GaussianEvent(1.0)), 10),))
    assert risk.find_gaussian_shift(amounts, ORDERS) is None
    assert 0.01 < risk.bound_true_positives_by_renyi(0.01, amounts, ORDERS) < 1


def test_infinite_amounts_bound_nothing() -> None:
    assert risk.bound_true_positives_by_renyi(0.01, [INFINITE] * len(ORDERS), ORDERS) == 1.0
    assert risk.find_gaussian_shift([INFINITE] * len(ORDERS), ORDERS) is None


@pytest.mark.parametrize(
    ("rate", "epsilon", "delta"), [(0, 1, 0), (1, 1, 0), (0.1, -1, 0), (0.1, 1, 1), (0.1, math.nan, 0)]
)
def test_arguments_out_of_range_are_refused(rate: float, epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        risk.bound_true_positives(rate, epsilon, delta)
