"""Membership inference: attackers, rates and the guarantee that they are compared with."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from app.inference.core.plan import MechanismPlan
from app.privacy.audit.shadow import compute_area
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent
from benchmarks import membership
from benchmarks.membership import (
    ATTACKERS,
    CANDIDATES,
    CONFIDENCE,
    Result,
    bound_area,
    bound_curve,
    count_power,
    describe_candidates,
    draw_coins,
    make_plan,
    release_once,
    render_page,
)

RESULT = Result("vips", 2.0, "own laws", 2, 200, 0.6, 0.7, 0.8, 0.1, 0.05, 0.2, 0.25, 0.01, 0.0, 0.02, 0.05)


def _draw_features(seed: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw features of 20 candidates; members have a mean of one standard deviation."""
    rng = np.random.default_rng(seed)
    coins = rng.integers(0, 2, (runs, 20)).astype(np.float64)
    return rng.standard_normal((runs, 20, 2)) + coins[:, :, None] * np.array([1.0, 0.0]), coins


@pytest.mark.parametrize("name", ATTACKERS)
def test_an_attacker_separates_nearly_as_well_as_possible(name: str) -> None:
    shadows, coins = _draw_features(0, 200)
    fresh, truth = _draw_features(1, 200)
    area = compute_area(ATTACKERS[name](shadows, coins, fresh).ravel(), truth.ravel())
    assert ndtr(1 / np.sqrt(2)) - 0.03 < area < ndtr(1 / np.sqrt(2)) + 0.03


@pytest.mark.parametrize("name", ATTACKERS)
def test_an_attacker_of_noise_guesses(name: str) -> None:
    shadows, coins = _draw_features(2, 200)
    fresh, truth = _draw_features(3, 200)
    area = compute_area(ATTACKERS[name](shadows, coins, np.zeros_like(fresh) + fresh.mean()).ravel(), truth.ravel())
    assert abs(area - 0.5) < 0.05


def test_power_counts_members_above_the_threshold_of_others() -> None:
    scores, coins = np.array([*range(100), *range(50, 150)], dtype=np.float64), np.repeat([0.0, 1.0], 100)
    found = count_power(scores, coins, 0.01)
    assert found.rate == pytest.approx(0.51)
    assert 0.3 < found.least < found.rate
    assert stats.binom.cdf(1, 100, found.most_false) == pytest.approx((1 - CONFIDENCE) / 2)


@pytest.mark.parametrize("runs", [4, 12, 40])
def test_each_candidate_is_in_one_half_of_the_runs(runs: int) -> None:
    """Otherwise shadow runs might never contain a candidate, and it had no law."""
    coins = draw_coins(runs)
    assert coins.sum(axis=0).tolist() == [runs / 2] * CANDIDATES
    assert len({tuple(each) for each in coins.T}) > 1


def test_the_guarantee_of_a_plan_is_that_of_its_events() -> None:
    plan = make_plan("vips", 8.0)
    assert 0.5 < bound_area(plan) < 1
    assert 0.01 < bound_curve(plan, 0.01) < 1
    assert bound_curve(plan, 0.01) > bound_curve(make_plan("vips", 0.5), 0.01)


def test_sampled_plans_have_a_curve_too() -> None:
    plan = make_plan("dp-vi", 2.0)
    sampled = replace(plan, queries=tuple(replace(query, event=_sample(query.event)) for query in plan.queries))
    assert isinstance(sampled, MechanismPlan)
    assert 0.01 < bound_curve(sampled, 0.01) < bound_curve(plan, 0.01)


def _sample(event: AtomicEvent) -> AtomicEvent:
    assert isinstance(event, GaussianEvent)
    return PoissonSampledEvent(0.1, event)


def test_a_release_describes_every_candidate() -> None:
    features = describe_candidates(release_once(make_plan("vips", 8.0), np.ones(CANDIDATES)))
    assert features.shape == (CANDIDATES, 5)
    assert np.isfinite(features).all()


def test_an_attack_beyond_the_guarantee_is_named() -> None:
    """W12: the page and the exit status show it."""
    broken = replace(RESULT, least_1=0.3)
    assert (RESULT.holds, broken.holds) == (True, False)
    assert "No attack exceeds" in render_page([RESULT], {"cores": "2"})
    assert "**1 attacks exceed" in render_page([RESULT, broken], {"cores": "2"})


def test_the_methods_are_the_private_ones() -> None:
    """A release of ``dp-groups`` contains its answers, which the audit of whole runs attacks."""
    from app.inference.registry import list_methods  # noqa: PLC0415

    assert set(membership.METHODS) == {method.id for method in list_methods() if method.private} - {"dp-groups"}
