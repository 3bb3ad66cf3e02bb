"""Matrices that may be asked in."""

import numpy as np
import pytest

from app.inference.methods.surrogate.matrices import LARGEST_INFORMATION, sound

RNG = np.random.default_rng(0)


def test_what_is_positive_definite_stays_to_the_bit() -> None:
    """In any units."""
    root, units = RNG.normal(size=(5, 5)), np.diag(10.0 ** np.arange(-6, 9, 3))
    matrix = units @ (root @ root.T) @ units
    found = sound(matrix)
    assert found is matrix


@pytest.mark.parametrize("values", [[1, 1, -1e-3], [1, 1, 0], [1, 1e-14, 1e-15]])
def test_what_is_nearly_so_is_mended_nearby(values: list[float]) -> None:
    basis = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    matrix = (basis * values) @ basis.T
    found = sound(matrix)
    assert found is not None
    np.linalg.cholesky(found)
    np.testing.assert_allclose(found, matrix, atol=3e-3)
    assert np.all(np.isfinite(np.linalg.inv(found)))


@pytest.mark.parametrize("entry", [np.nan, np.inf, -1.0, 0.0, 2 * LARGEST_INFORMATION])
def test_what_is_no_matrix_is_none(entry: float) -> None:
    matrix = np.eye(3)
    matrix[1, 1] = entry
    assert sound(matrix) is None
