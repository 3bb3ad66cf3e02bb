"""Diagnostics of a release: effective sizes and rounded figures."""

import numpy as np
import pytest

from app.inference.post.diagnostics import MOST_NOISE, compute_bearable_noise, compute_effective_size, round_stated


def test_the_effective_size_counts_equal_weights() -> None:
    """n equal weights count as n, with any number of zeros; unequal ones count as fewer."""
    assert compute_effective_size(np.array([3.0, 3.0, 0.0, 3.0])) == pytest.approx(3)
    assert 1 < compute_effective_size(np.array([1.0, 2.0, 5.0])) < 3
    assert compute_effective_size(np.zeros(4)) == 0


def test_bearable_noise_is_proportional_to_learned_nats_above_one() -> None:
    assert compute_bearable_noise(40.0) == 40 * MOST_NOISE
    assert compute_bearable_noise(0.0) == compute_bearable_noise(1.0) == MOST_NOISE


@pytest.mark.parametrize(
    ("value", "expected"), [(65.36960374, 65.37), (1234567.0, 1235000.0), (0.0, 0.0), (np.nan, -1.0), (np.inf, -1.0)]
)
def test_figures_have_four_digits_and_are_finite(value: float, expected: float) -> None:
    assert round_stated(value) == expected
