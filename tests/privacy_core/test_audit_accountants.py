"""Three accountants at 216 points: the ledger's, a privacy loss distribution, and closed forms."""

import math

import pytest
from dp_accounting.pld import privacy_loss_distribution

from app.privacy.accounting import compute_cost
from app.privacy.audit.composed import ComposedTradeOff
from app.privacy.audit.laws import AnswerLaw
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, SelfComposedEvent

RATES = (1.0, 0.3, 0.1, 0.02, 0.005, 0.001)
NOISES = (0.8, 1.5, 4.0, 12.0)
COUNTS = (1, 30, 1000)
DELTAS = (1e-4, 1e-6, 1e-9)


def _make_event(rate: float, noise: float) -> AtomicEvent:
    return GaussianEvent(noise) if rate == 1 else PoissonSampledEvent(rate, GaussianEvent(noise))


def _compute_lower(rate: float, noise: float, count: int) -> privacy_loss_distribution.PrivacyLossDistribution:
    """Discretise the privacy loss, rounded down: epsilon is never above the true one."""
    one = privacy_loss_distribution.from_gaussian_mechanism(
        noise,
        value_discretization_interval=1e-3,
        sampling_prob=rate,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    return one.self_compose(count) if count > 1 else one


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.long
def test_w9_the_ledger_never_charges_less_than_another_accountant(rate: float, noise: float) -> None:
    """W9: at every count and delta; the tail bound of the other library is 1e-15 in delta."""
    for count in COUNTS:
        lower = _compute_lower(rate, noise, count)
        events = (SelfComposedEvent(_make_event(rate, noise), count),)
        for delta in DELTAS:
            charged = compute_cost(events, delta)
            assert charged >= float(lower.get_epsilon_for_delta(delta)) - 1e-9, (rate, noise, count, delta)
            if rate == 1:
                exact = AnswerLaw(noise / math.sqrt(count)).compute_epsilon(delta)
                assert exact <= charged
                assert charged <= 1.35 * exact + 1e-6 or exact > 10
            elif count == 1:
                assert charged >= AnswerLaw(noise, rate).compute_epsilon(delta)


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_the_privacy_loss_distribution_is_rounded_to_the_safe_side(rate: float) -> None:
    """Rounded up and down it encloses the closed form of one event."""
    exact = AnswerLaw(1.5, rate).compute_epsilon(1e-6)
    upper = ComposedTradeOff((_make_event(rate, 1.5),)).compute_epsilon(1e-6)
    lower = float(_compute_lower(rate, 1.5, 1).get_epsilon_for_delta(1e-6))
    assert lower <= exact <= upper <= lower + 5e-3
