"""Calibrated noise: it is cached, and raised by a small margin if the account then admits the job."""

from collections.abc import Callable
from functools import partial

import pytest

from app.errors import InvalidRequest
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest
from app.jobs import planning
from app.jobs.planning import BISECTIONS, MARGIN, NoiseCache, Wish, make_plan
from app.ledger import Charge
from app.privacy.accounting import compute_cost
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent, PrivacyEvent, SelfComposedEvent

DELTA = 1e-6
FACTS = DeclaredFacts(
    (Column("age", "integer", 0, 100), Column("ill", "binary")), 1_000_000, {"kind": "row"}, "private", DELTA
)
MODEL = ModelSpec("logistic-regression", ("age",), "ill")


def wish(epsilon: float | None = 0.5, *, mechanism: Mechanism | None = None, size: int = 5) -> Wish:
    return Wish(PlanRequest("dp-psvi", size, MODEL, {}, mechanism), epsilon)


def noise_of(charge: Charge) -> float:
    (event,) = charge.events
    inner = event.event if isinstance(event, SelfComposedEvent) else event
    return getattr(inner, "noise_multiplier", None) or inner.event.noise_multiplier  # type: ignore[union-attr]


def is_noisy(threshold: float, charge: Charge) -> bool:
    return noise_of(charge) >= threshold


def test_plans_with_equal_events_are_calibrated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def counting(plan: Callable[[float], tuple[PrivacyEvent, ...]], target: float, delta: float) -> float:
        calls.append(target)
        return calibrate(plan, target, delta)

    monkeypatch.setattr(planning, "calibrate", counting)
    cache = NoiseCache()
    first = make_plan(wish(), FACTS, DELTA, cache, lambda _: True)
    second = make_plan(wish(size=9), FACTS, DELTA, cache, lambda _: True)
    assert (calls, first.events, second.size) == ([0.5], second.events, 9)
    make_plan(wish(0.6), FACTS, DELTA, cache, lambda _: True)
    make_plan(wish(), FACTS, 1e-7, cache, lambda _: True)
    assert calls == [0.5, 0.6, 0.5]


def test_cached_noise_is_not_used_for_other_events() -> None:
    """Plans may be equal at one noise and differ at another; no job may cost more than its target."""
    cache = NoiseCache()

    def cheap(noise: float) -> tuple[PrivacyEvent, ...]:
        return (GaussianEvent(noise),)

    def expensive(noise: float) -> tuple[PrivacyEvent, ...]:
        return cheap(noise) if noise <= planning.PROBE_NOISE else (SelfComposedEvent(GaussianEvent(noise), 2),)

    assert compute_cost(cheap(cache.noise(cheap, 0.5, DELTA)), DELTA) <= 0.5
    assert compute_cost(expensive(cache.noise(expensive, 0.5, DELTA)), DELTA) <= 0.5


def test_smallest_admitted_noise_within_the_margin_is_chosen() -> None:
    least = noise_of(planning.make_charge(make_plan(wish(), FACTS, DELTA, NoiseCache(), lambda _: True)))
    for needed in (1.0, 1.001, 1.02, 1 + MARGIN):
        threshold = least * needed * (1 - 1e-12)
        plan = make_plan(wish(), FACTS, DELTA, NoiseCache(), partial(is_noisy, threshold))
        assert noise_of(planning.make_charge(plan)) == pytest.approx(least * needed, rel=MARGIN * 2**-BISECTIONS)
        assert compute_cost(plan.events, DELTA) <= 0.5


def test_noise_above_the_margin_is_never_chosen() -> None:
    least = make_plan(wish(), FACTS, DELTA, NoiseCache(), lambda _: True)
    assert make_plan(wish(), FACTS, DELTA, NoiseCache(), lambda _: False) == least


def test_requested_mechanism_is_planned_unchanged() -> None:
    mechanism = Mechanism(3.0, 1.0, 7)
    plan = make_plan(wish(None, mechanism=mechanism), FACTS, DELTA, NoiseCache(), lambda _: False)
    assert (plan.mechanism, plan.events) == (mechanism, (SelfComposedEvent(GaussianEvent(3.0), 7),))


def test_unreachable_target_is_refused_at_its_member() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        make_plan(wish(1e-9), FACTS, DELTA, NoiseCache(), lambda _: True)
    assert [fault.pointer for fault in refusal.value.faults] == ["/privacy/epsilon"]


def test_full_cache_drops_its_oldest_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = list[float]()

    def calibrate(plan: object, target: float, delta: float) -> float:
        computed.append(target)
        return target

    monkeypatch.setattr(planning, "_CACHED", 2)
    monkeypatch.setattr(planning, "calibrate", calibrate)
    cache = NoiseCache()
    for epsilon in (1.0, 2.0, 3.0, 3.0, 2.0, 1.0):
        cache.noise(lambda noise: (GaussianEvent(noise),), epsilon, DELTA)
    assert computed == [1.0, 2.0, 3.0, 1.0]
