"""Tails of columns: rows of levels, and steps along them."""

import numpy as np

from app.inference.methods.surrogate.tails import Tails


def test_only_rare_levels_bound_a_step() -> None:
    found = Tails(np.array([1.0, 0.4]), np.array([10.0, 6.0]), np.zeros(2), np.zeros((1, 2)), clear=True)
    np.testing.assert_array_equal(found.longest(np.array([0.1, 0.1]), 2.0), [2.0, np.inf])


def test_rows_of_levels_are_at_the_bound_of_their_side() -> None:
    """Where either is near enough, and a tail on both sides at its distance; all else is at its mean."""
    share, side = np.array([1.0, 1.0, 1.0, 0.4]), np.array([0.9, 0.1, -0.9, 1.0])
    found = Tails(share, np.array([7.0, 6.0, 8.0, 5.0]), side, np.zeros((1, 4)), clear=True)
    mean, deviation = np.array([0.0, 0.1, -0.96, 0.5]), np.array([0.14, 0.05, 0.2, 0.1])
    covariance = np.diag(deviation**2)
    covariance[0, 3] = covariance[3, 0] = 0.2 * 0.14 * 0.1  # little in common
    rows = found.level_rows(mean, covariance, np.full(4, -1.0), np.ones(4))
    expected = [[1, 0.1, -0.96, 0.5], [0, 0.4, -0.96, 0.5], [0, -0.2, -0.96, 0.5], [0, 0.1, 1, 0.5]]
    np.testing.assert_allclose(rows, expected, atol=1e-12)


def test_what_follows_a_level_is_where_it_puts_it() -> None:
    """The same column twice, and one that is another's opposite, within bounds."""
    share, side = np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0])
    found = Tails(share, np.array([7.0, 7.0, 5.0]), side, np.zeros((1, 3)), clear=True)
    covariance = np.outer([0.14, 0.14, -0.28], [0.14, 0.14, -0.28])
    rows = found.level_rows(np.array([0.02, 0.02, 0.96]), covariance, np.full(3, -1.0), np.ones(3))
    np.testing.assert_allclose(rows, [[1, 1, -1], [1, 1, -1]])


def test_rarer_values_are_at_their_distance_on_each_side_that_they_may_be_on() -> None:
    """Those that are known, and those that columns may have; amounts have none, and none is beyond a bound."""
    share, side = np.array([1.0, 0.4, 1.0, 0.4, 0.0]), np.array([0.9, -0.8, 0.1, 1.0, 0.0])
    perhaps = np.array([0.0, 3.0, 0.0, 0.0, 0.0])
    found = Tails(share, np.array([7.0, 6.0, 4.0, 6.0, 5.0]), side, np.zeros((1, 5)), clear=True, perhaps=perhaps)
    mean, deviation = np.array([0.9, 0.5, 0.0, 0.2, 0.1]), np.full(5, 0.1)
    rows, known = found.rarer_values(mean, deviation, np.array([-1.0, 0.3, -1.0, -1.0, -1.0]))
    expected = np.array([mean, mean, mean, mean])
    expected[np.arange(4), [0, 1, 2, 2]] = [1.0, 0.3, -0.4, 0.4]
    np.testing.assert_allclose(rows, expected)
    np.testing.assert_array_equal(known, [True, False, True, True])
