"""The cost of distinguishing two values of one unit, against exact hockey-stick divergences."""

import math

import pytest

from app.privacy.relation import IN_WORDS
from tests.privacy_core.divergences import gaussian_delta

CASES = [(0.5, 1.0), (1.0, 4.0), (2.0, 1.0), (4.0, 0.5)]
"""Noise multiplier, and epsilon."""


@pytest.mark.parametrize(("noise", "epsilon"), CASES)
def test_two_values_of_a_unit_cost_more_than_twice_epsilon(noise: float, epsilon: float) -> None:
    """They move a Gaussian's mean by two sensitivities: at 2 epsilon, delta exceeds that of the null row."""
    delta, between = float(gaussian_delta(noise, epsilon)), float(gaussian_delta(noise / 2, 2 * epsilon))
    assert delta < between <= (1 + math.exp(epsilon)) * delta


def test_the_words_of_the_certificate_state_that_bound() -> None:
    assert "up to (2 epsilon, (1 + e^epsilon) delta)" in IN_WORDS
