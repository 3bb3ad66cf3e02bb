"""What is stated of a release: effective sizes, and figures of as many digits as are known."""

import numpy as np
import pytest

from app.inference.post.diagnostics import MOST_NOISE, bearable_noise, effective_size, round_stated


def test_the_effective_size_counts_equal_weights() -> None:
    """n of them count as n whatever the others' zeros are, and unequal ones as fewer."""
    assert effective_size(np.array([3.0, 3.0, 0.0, 3.0])) == pytest.approx(3)
    assert 1 < effective_size(np.array([1.0, 2.0, 5.0])) < 3
    assert effective_size(np.zeros(4)) == 0


def test_noise_is_borne_in_proportion_to_what_was_learned_but_some_always() -> None:
    assert bearable_noise(40.0) == 40 * MOST_NOISE
    assert bearable_noise(0.0) == bearable_noise(1.0) == MOST_NOISE


@pytest.mark.parametrize(
    ("value", "said"), [(65.36960374, 65.37), (1234567.0, 1235000.0), (0.0, 0.0), (np.nan, -1.0), (np.inf, -1.0)]
)
def test_figures_have_four_digits_and_json_holds_them(value: float, said: float) -> None:
    assert round_stated(value) == said
