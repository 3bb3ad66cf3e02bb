"""The schedule: one Gaussian's price, and bounds that follow the noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.inference.methods.surrogate.contribution_bounds import (
    information_bound,
    information_noise,
    score_bound,
    score_noise,
)
from app.inference.methods.surrogate.schedule import LENGTHS_NOISE, LENGTHS_SHARE, MOST_LENGTHS_SHARE, Schedule
from app.privacy.accounting import compute_cost
from app.privacy.events import GaussianEvent
from support.surrogate_tables import Case

SCHEDULES = [
    Schedule(sigma, rate, slots, dimension, informed=informed, one_predictor=plain, labels=plain)
    for sigma in (0.3, 4.0, 60.0)
    for rate in (0.2, 1.0)
    for slots in (300, 100_000)
    for dimension in (1, 30)
    for informed in (True, False)
    for plain in (True, False)
]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_shares_sum_to_one_and_scores_grow(schedule: Schedule) -> None:
    shares = schedule.score_shares
    matrices = schedule.information_share * schedule.rounds if schedule.informed else 0
    opening = 2 * schedule.lengths_share + schedule.means_share + schedule.moments_share + schedule.tails_share
    assert opening + shares.sum() + matrices == pytest.approx(1, rel=1e-12)
    assert len(shares) == schedule.rounds
    assert np.all(np.diff(shares) > 0)


@pytest.mark.parametrize("case", [Case(), Case("gaussian-mean"), Case("multinomial-logistic", features=3)])
@pytest.mark.parametrize("sigma", [0.4, 5.0, 70.0])
def test_a_plan_of_full_queries_costs_what_one_gaussian_costs(case: Case, sigma: float) -> None:
    """Composition adds ``1 / sigma_t**2``, and prices of full Gaussians follow from that sum alone."""
    assert compute_cost(case.plan(sigma).events, 1e-6) == pytest.approx(
        compute_cost((GaussianEvent(sigma),), 1e-6), rel=1e-9
    )


def test_bounds_shrink_as_noise_grows_down_to_a_floor() -> None:
    """Noise grows with a bound, clipping's bias falls with it."""
    quiet, loud, louder = (Schedule(sigma, 1.0, 10_000, 10) for sigma in (0.1, 3.0, 1e4))
    assert score_bound(quiet) > score_bound(loud) >= score_bound(louder)
    assert information_bound(quiet, 0) > information_bound(loud, 0) >= information_bound(louder, 0)
    assert score_bound(louder) == pytest.approx(np.sqrt(1.5 * 10 / 10_000))
    assert information_bound(louder, 0) == pytest.approx(1.9 * 10 / 10_000)


def test_lengths_are_asked_for_until_bins_stand_out() -> None:
    """Fewer slots need a larger share for the same bin; between limits."""
    many, few, fewest = (Schedule(60.0, 1.0, slots, 10, one_predictor=True) for slots in (100_000, 20_000, 1_000))
    assert many.lengths_share == LENGTHS_SHARE
    assert few.multiplier(few.lengths_share) == pytest.approx(LENGTHS_NOISE * 20_000)
    assert fewest.lengths_share == MOST_LENGTHS_SHARE
    assert replace(fewest, one_predictor=False).lengths_share == LENGTHS_SHARE


def test_the_last_information_matrix_is_bounded_more_loosely() -> None:
    schedule = Schedule(20.0, 1.0, 10_000, 10)
    bounds = [information_bound(schedule, turn) for turn in range(schedule.rounds)]
    assert bounds[-1] > bounds[0]
    assert set(bounds[:-1]) == {bounds[0]}


def test_sampling_counts_as_noise() -> None:
    """A sum over a share q of the slots, divided by q, has 1/q times the noise."""
    full, sampled = Schedule(6.0, 1.0, 10_000, 10), Schedule(3.0, 0.5, 10_000, 10)
    assert sampled.effective_sigma == full.effective_sigma
    for turn in range(full.rounds):
        assert score_noise(sampled, turn) == score_noise(full, turn)
        assert information_noise(sampled, turn) == information_noise(full, turn)
    assert sampled.multiplier(0.25) == 6.0


def test_asked_rounds_outdo_the_default() -> None:
    schedule = Schedule(3.0, 1.0, 10_000, 10)
    assert schedule.rounds != 5
    assert replace(schedule, asked_rounds=5).rounds == 5


@pytest.mark.parametrize("sigma", [0.5, 5.0])
def test_where_no_column_is_a_rare_level_matrices_have_less_room_and_less_noise(sigma: float) -> None:
    schedule = Schedule(sigma, 1.0, 2000, 10, one_predictor=True, labels=True)
    for turn in range(schedule.rounds):
        wide, narrow, certain = (information_noise(schedule, turn, told) for told in (np.inf, 1.0, 100.0))
        assert narrow < 0.7 * wide
        assert certain == wide
        assert information_bound(schedule, turn, 1.0) >= 1.9 * 10 / 2000


def test_scores_have_more_room_where_labels_that_follow_no_model_lose_more_than_noise_takes() -> None:
    """Of labels, matrices clear, and noise no matter of course."""
    clear = Schedule(5.0, 1.0, 2000, 10, one_predictor=True, labels=True)
    wider = score_bound(clear) ** 2 / score_bound(replace(clear, labels=False)) ** 2
    assert wider == pytest.approx(1.25)
    for sigma in (0.3, 20.0):
        other = replace(clear, sigma=sigma)
        assert score_bound(other) == score_bound(replace(other, labels=False))


def test_noise_hides_levels_beyond_a_tenth_of_a_nat_whatever_was_answered() -> None:
    """``(sigma p)**2 / 2 n`` nats, by the declared number of slots."""
    schedule = Schedule(1.0, 1.0, 10_000, 10, one_predictor=True, labels=True)
    assert schedule.declared_noise == pytest.approx(0.5 * (1.0 * 10) ** 2 / 10_000)
    for noise, hides in ((0.099, False), (0.101, True)):
        found = replace(schedule, sigma=math.sqrt(noise / schedule.declared_noise))
        assert found.hides_levels is hides
        assert replace(found, units=1.0).hides_levels is hides
