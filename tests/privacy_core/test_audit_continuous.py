"""The e-process of the continuous audit: fair, and powerful also against defects that start late (W12)."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.privacy.audit.continuous import (
    ALTERNATIVES,
    CERTAIN,
    DEFECT,
    Capital,
    compute_log_evidence,
    compute_log_ratios,
    expect_batches,
)
from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.thresholds import compute_log_threshold

CLAIM = AnswerLaw(1.0)
NONE = np.zeros(0)


def _draw(rng: np.random.Generator, law: AnswerLaw, n: int) -> tuple[Array64, Array64]:
    present = rng.integers(0, 2, n).astype(float)
    is_in = present * (rng.random(n) < law.rate)
    return law.noise * rng.standard_normal(n) + law.shift * is_in, present


def test_bets_and_reserve_are_the_whole_capital() -> None:
    """W12: batches without information change nothing, so no capital appears or vanishes."""
    capital = Capital()
    for _ in range(200):
        capital = capital.bet(CLAIM, NONE, NONE)
        assert capital.compute_log() == pytest.approx(0, abs=1e-12)


def test_expected_capital_does_not_grow_under_the_claim() -> None:
    """W12: by quadrature over one answer, also after other batches."""
    x = np.linspace(-12, 12, 301)
    rng = np.random.default_rng(1)
    for before in (Capital(), Capital().bet(CLAIM, *_draw(rng, CLAIM, 5)).bet(CLAIM, *_draw(rng, CLAIM, 9))):
        for present in (0.0, 1.0):
            mass = np.exp(CLAIM.compute_log_density(x, np.full(len(x), present))) * (x[1] - x[0])
            after = [math.exp(before.bet(CLAIM, np.array([each]), np.array([present])).compute_log()) for each in x]
            assert float(np.sum(mass * after)) == pytest.approx(math.exp(before.compute_log()), rel=1e-3)


def test_a_forfeited_batch_leaves_the_reserve_only() -> None:
    """W12: also its stake is lost, as if its ratio were 0; later batches bet as after any other."""
    before = Capital().bet(CLAIM, NONE, NONE)
    forfeited, lasting = before.forfeit(), before.bet(CLAIM, NONE, NONE)
    assert math.exp(forfeited.compute_log()) == pytest.approx(1 / 3)
    following = math.exp(forfeited.bet(CLAIM, NONE, NONE).compute_log())
    assert following == pytest.approx(1 / 3)
    assert forfeited.batches == lasting.batches == 2


def test_true_claims_seldom_reach_twenty() -> None:
    """W12: of 100 processes at most 1 in 20 may; more than 20 would have a chance of 10**-7."""
    rng, reached = np.random.default_rng(2), 0
    for _ in range(100):
        capital, largest = Capital(), 0.0
        for claim in [CLAIM, AnswerLaw(2.0, 0.3)] * 5:
            capital = capital.bet(claim, *_draw(rng, claim, 50))
            largest = max(largest, capital.compute_log())
        reached += largest >= math.log(20)
    assert reached <= 20


@pytest.mark.parametrize("earlier", [Capital(), Capital(10**7, (-1e6,) * len(ALTERNATIVES))])
def test_a_defect_of_two_percent_is_detected_also_after_years(earlier: Capital) -> None:
    """W12: within twice the expected number of batches, after ten million true ones too."""
    rng, capital, threshold = np.random.default_rng(3), earlier, compute_log_threshold(0)
    broken, answers = replace(CLAIM, noise=DEFECT * CLAIM.noise), 4000
    expected = expect_batches(earlier, 1.0, threshold, answers)
    for _ in range(2 * expected):
        capital = capital.bet(CLAIM, *_draw(rng, broken, answers))
    assert capital.compute_log() > threshold
    assert expected < 40


def test_a_process_without_a_reserve_would_not_detect_it() -> None:
    """The reason for the reserve: the same bets without it are still at the bottom."""
    rng = np.random.default_rng(4)
    broken = replace(CLAIM, noise=DEFECT * CLAIM.noise)
    logs = np.full(len(ALTERNATIVES), -1e6)
    for _ in range(50):
        logs += compute_log_ratios(CLAIM, *_draw(rng, broken, 4000))
    assert logs.max() < -9e5


def test_a_rate_that_is_too_high_is_detected_at_sampled_claims_only() -> None:
    """W4: alternatives about the rate have ratio 1 at rate 1."""
    rng = np.random.default_rng(5)
    about_rate = [place for place, name in enumerate(ALTERNATIVES) if "rate" in name]
    assert np.all(compute_log_ratios(CLAIM, *_draw(rng, CLAIM, 100))[about_rate] == 0)
    claim = AnswerLaw(0.05, 0.02)
    found = compute_log_ratios(claim, *_draw(rng, replace(claim, rate=0.03), 50_000))
    assert found[about_rate].max() > compute_log_threshold(0) + 10


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e200])
def test_answers_that_the_claim_excludes_are_certain_evidence(value: float) -> None:
    capital = Capital().bet(CLAIM, np.array([0.1, value]), np.array([1.0, 0.0]))
    assert capital.compute_log() > CERTAIN - 10
    assert all(map(math.isfinite, capital.bets))


def test_all_false_alarms_together_have_a_small_chance() -> None:
    """W12: resets double the threshold, so the chances add up to 2 / 1000."""
    chances = [math.exp(-compute_log_threshold(resets)) for resets in range(60)]
    assert chances[0] == pytest.approx(1e-3)
    assert sum(chances) == pytest.approx(2e-3)


def test_evidence_is_the_weighted_mean_of_capitals() -> None:
    rich = Capital(1, (math.log(100.0),) * len(ALTERNATIVES))
    evidence = compute_log_evidence({"a": rich}, {"a": 0.25, "b": 0.75})
    assert math.exp(evidence) == pytest.approx(0.25 * (100 * len(ALTERNATIVES) + 0.5) + 0.75)


@pytest.mark.parametrize(
    ("batches", "bets"),
    [(-1, ()), (0, (0.0,)), (1, ()), (1, (0.0,)), (1, (math.nan,) * len(ALTERNATIVES))],
)
def test_impossible_capitals_are_refused(batches: int, bets: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="finite bet"):
        Capital(batches, bets)
