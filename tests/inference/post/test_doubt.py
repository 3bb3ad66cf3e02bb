"""The stated covariance of the error in a mean."""

import numpy as np
import pytest

from app.inference.post.doubt import combine_errors, state_doubt


def test_rounding_of_a_symmetric_matrix_is_removed() -> None:
    matrix = np.array([[2.0, 1.0 + 1e-12], [1.0, 3.0]])
    stated = state_doubt(matrix)
    assert stated is not None
    np.testing.assert_array_equal(stated, stated.T)
    np.testing.assert_allclose(stated, matrix, rtol=1e-11)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308 * 1e10])
def test_values_that_are_not_finite_are_not_stated(value: float) -> None:
    assert state_doubt(np.array([[1.0, value], [value, 1.0]])) is None


def test_negative_variances_are_not_stated() -> None:
    assert state_doubt(np.diag([1.0, -1e-9])) is None
    assert state_doubt(np.diag([1.0, 0.0])) is not None


def test_known_shifts_add_their_squares_to_the_noise() -> None:
    noise, drifts = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([[3.0, 0.0], [1.0, -2.0]])
    expected = [[4.0 + 9 + 1, 1.0 - 2], [1.0 - 2, 2.0 + 4]]
    np.testing.assert_array_equal(combine_errors(noise, drifts), expected)
    assert combine_errors(noise, np.full((1, 2), 1e200)) is None


@pytest.mark.parametrize("covariance", [-0.9, 1.002, 50.0])
def test_stated_covariance_is_positive_semidefinite(covariance: float) -> None:
    """Draws need a root of it; rounding of very different variances leaves negative eigenvalues."""
    scales = np.array([1, 1e6, 1e-6])
    correlation = np.array([[1.0, 0.9, covariance], [0.9, 1.0, 0.9], [covariance, 0.9, 1.0]])
    matrix = correlation * np.outer(scales, scales)
    stated = state_doubt(matrix)
    assert stated is not None
    assert np.linalg.eigvalsh(stated / np.outer(scales, scales))[0] >= -1e-12
    assert np.all(stated.diagonal() >= matrix.diagonal() * (1 - 1e-12))
    np.testing.assert_array_equal(stated, stated.T)


def test_covariance_is_stated_unchanged() -> None:
    kept = np.diag([2.0, 0.0, 1e-300])
    np.testing.assert_array_equal(state_doubt(kept), kept)
