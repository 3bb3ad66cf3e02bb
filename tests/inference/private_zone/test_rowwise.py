"""Row-wise operations, for both memory layouts."""

import numpy as np
import pytest

from app.inference.private_zone.rowwise import add_to_rows, choose, zero_rows_unless


@pytest.mark.parametrize("order", ["C", "F"])
def test_amounts_are_added_to_every_column(order: str) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3).copy(order="F" if order == "F" else "C")
    expected, amounts = values + np.array([[1], [20], [-3], [0.5]], np.float32), np.array([1, 20, -3, 0.5], np.float32)
    add_to_rows(values, amounts)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_with_a_false_flag_become_zero(order: str) -> None:
    """W14: NaN and infinity become zero too; other rows do not change, bit by bit."""
    values = np.array([[1, -0.0], [np.nan, 2], [np.inf, -1], [np.nan, 1e-45]], np.float32).copy(
        order="F" if order == "F" else "C"
    )
    keep = np.array([True, False, False, True])
    expected = np.where(keep[:, None], values, np.float32(0))
    zero_rows_unless(values, keep)
    assert values.tobytes() == expected.tobytes()
    single = values[:, 0].copy()
    zero_rows_unless(single, np.array([False, True, True, True]))
    assert single[0] == 0


def test_choose_equals_where_bit_by_bit() -> None:
    condition = np.array([True, False, True, False])
    chosen, other = np.array([np.nan, np.inf, -0.0, 1e-320]), np.array([1.0, -0.0, np.nan, np.inf])
    assert choose(condition, chosen, other).tobytes() == np.where(condition, chosen, other).tobytes()
    one = np.float64(1)
    assert choose(condition, chosen, one).tobytes() == np.where(condition, chosen, one).tobytes()
