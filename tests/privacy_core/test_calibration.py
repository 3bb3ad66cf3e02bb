"""Calibration: it finds the least noise, never overspends, and refuses an unreachable target."""

import math
from collections.abc import Sequence

import pytest

from app.privacy import accounting
from app.privacy.accounting import MOST_NOISE, ORDERS, compute_cost
from app.privacy.calibration import LEAST_NOISE, Plan, Unreachable, calibrate
from app.privacy.events import (
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelfComposedEvent,
    UnknownEvent,
)

DELTA = 1e-6


def _plan(rate: float, steps: int) -> Plan:
    return lambda noise: (SelfComposedEvent(PoissonSampledEvent(rate, GaussianEvent(noise)), steps),)


@pytest.mark.parametrize("rate", [1.0, 0.5, 0.02, 0.002])
@pytest.mark.parametrize("steps", [1, 500, 100_000])
@pytest.mark.parametrize("target", [0.05, 1.0, 20.0])
@pytest.mark.long
def test_the_noise_is_the_least_that_does_not_overspend(rate: float, steps: int, target: float) -> None:
    """W8: the charge is at most the target, and the noise exceeds the least by at most a relative 1e-6."""
    plan = _plan(rate, steps)
    noise = calibrate(plan, target, DELTA)
    assert compute_cost(plan(noise), DELTA) <= target < compute_cost(plan(noise * (1 - 1e-6)), DELTA)


@pytest.mark.parametrize("target", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-9])
def test_noise_of_full_batches_matches_the_closed_form(target: float, delta: float) -> None:
    steps = 17

    def least(order: float) -> float:
        limit = target - math.log(1 - 1 / order) + math.log(delta * order) / (order - 1)
        return math.sqrt(steps * order / (2 * limit)) if limit > 0 else math.inf

    assert calibrate(_plan(1.0, steps), target, delta) == pytest.approx(min(map(least, ORDERS)), rel=1e-6)


def test_noise_grows_with_steps_and_rate_and_falls_with_target_and_delta() -> None:
    def noise(rate: float = 0.1, steps: int = 50, target: float = 1.0, delta: float = DELTA) -> float:
        return calibrate(_plan(rate, steps), target, delta)

    assert noise() < noise(steps=60)
    assert noise() < noise(rate=0.12)
    assert noise() > noise(target=1.1)
    assert noise() > noise(delta=1e-5)


def test_queries_of_different_noise_are_calibrated_together() -> None:
    shares = [1.25**step for step in range(3)]

    def plan(noise: float) -> Sequence[PoissonSampledEvent]:
        return [PoissonSampledEvent(0.3, GaussianEvent(noise / math.sqrt(share))) for share in shares]

    noise = calibrate(plan, 2.0, DELTA)
    assert compute_cost(plan(noise), DELTA) <= 2.0 < compute_cost(plan(noise * (1 - 1e-6)), DELTA)


@pytest.mark.parametrize("target", [math.nan, math.inf, -math.inf, 0.0, -1.0])
def test_a_target_that_is_not_positive_and_finite_is_unreachable(target: float) -> None:
    with pytest.raises(Unreachable):
        calibrate(_plan(1.0, 1), target, DELTA)


@pytest.mark.parametrize(("target", "delta"), [(1e-4, 1e-9), (0.005, 1e-6)])
def test_a_target_below_what_any_order_states_is_unreachable(target: float, delta: float) -> None:
    with pytest.raises(Unreachable):
        calibrate(_plan(0.1, 10), target, delta)


def test_a_plan_whose_cost_noise_cannot_lower_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        calibrate(lambda noise: (GaussianEvent(0.1), GaussianEvent(noise)), 1.0, DELTA)


def test_a_target_that_only_the_most_noise_meets_is_met() -> None:
    plan = _plan(1.0, 2**40)
    least = compute_cost(plan(MOST_NOISE), DELTA)
    assert calibrate(plan, least, DELTA) == pytest.approx(MOST_NOISE, rel=1e-6)
    with pytest.raises(Unreachable) as refusal:
        calibrate(plan, least * (1 - 1e-6), DELTA)
    assert refusal.value.least == least


def test_a_very_large_target_gives_the_least_noise() -> None:
    assert calibrate(_plan(0.1, 1), 1e4, DELTA) == pytest.approx(LEAST_NOISE, rel=1e-9)


def test_a_plan_without_a_price_is_refused() -> None:
    with pytest.raises(UnknownEvent):
        calibrate(lambda noise: (GaussianEvent(noise), NonPrivateEvent()), 1.0, DELTA)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_a_delta_out_of_range_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        calibrate(_plan(1.0, 1), 1.0, delta)


@pytest.mark.parametrize(("rate", "steps", "target"), [(0.002, 500, 0.4), (0.5, 100_000, 5.0), (0.02, 10, 0.4)])
def test_a_new_target_asks_the_library_for_few_prices(
    rate: float, steps: int, target: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    price = accounting._divergences.__wrapped__

    def counted(rate: float, noise: float, orders: tuple[float, ...]) -> tuple[float, ...]:
        nonlocal asked
        asked += sum(map(int, orders))
        return price(rate, noise, orders)

    monkeypatch.setattr(accounting, "_divergences", counted)
    calibrate(_plan(rate, steps), target, DELTA)
    assert asked < 60_000
