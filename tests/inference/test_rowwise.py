"""Passes over whole arrays, however they lie in memory."""

import numpy as np
import pytest

from app.inference.rowwise import add_to_rows


@pytest.mark.parametrize("order", ["C", "F"])
def test_every_column_gets_the_rows_amounts(order: str) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3).copy(order="F" if order == "F" else "C")
    expected, amounts = values + np.array([[1], [20], [-3], [0.5]], np.float32), np.array([1, 20, -3, 0.5], np.float32)
    add_to_rows(values, amounts)
    np.testing.assert_array_equal(values, expected)
