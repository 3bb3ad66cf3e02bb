"""Linear algebra of symmetric matrices, and factors of positive definite ones."""

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64

_LEAST_RATIO = 1e-12
"""Least eigenvalue of a matrix that is raised, over the largest."""


def symmetric(matrix: Array64) -> Array64:
    """Compute the symmetric part of ``matrix`` ``(D, D)``, which removes rounding errors."""
    return np.asarray(0.5 * (matrix + matrix.T))


def raise_to(matrix: Array64, least: Array64) -> Array64:
    """Raise ``matrix`` to at least ``least``, both ``(D, D)`` and symmetric.

    The negative part of the difference becomes zero, so the result minus ``least`` is positive semidefinite.
    """
    values, vectors = np.linalg.eigh(symmetric(matrix - least))
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T + least)


def whiten(matrix: Array64, factor: Array64) -> Array64:
    """Compute ``factor^-1 matrix factor^-T``; it is the identity if ``matrix`` is ``factor factor'``.

    Args:
        matrix: symmetric, ``(D, D)``.
        factor: any invertible matrix, ``(D, D)``.

    Raises:
        numpy.linalg.LinAlgError: ``factor`` is singular.
    """
    half = np.linalg.solve(factor, matrix)
    return symmetric(np.linalg.solve(factor, half.T))


def compute_mean_gram(factors: Array64 | Array32, weights: Array64 | float = 1.0) -> Array64:
    """Compute the mean Gram matrix ``(D, D)`` of M weighted factors.

    It is the mean of ``w_m F_m' F_m``. The product has the precision of the factors.

    Args:
        factors: ``(M, r, D)``.
        weights: ``(M,)`` or one number, not negative.
    """
    roots: NDArray[Any] = np.reshape(np.sqrt(weights), (-1, 1, 1)).astype(factors.dtype)
    flat = (factors * roots).reshape(-1, factors.shape[2])
    return np.asarray(flat.T @ flat / len(factors), dtype=np.float64)  # symmetric, so BLAS computes half


def compare_widths(ratio: Array64) -> float:
    """Compute the KL divergence in nats between two normal laws with the same mean.

    ``ratio`` ``(D, D)`` is the second precision times the covariance of the first law, or similar to that product.
    """
    return 0.5 * (float(np.trace(ratio)) - len(ratio) - float(np.linalg.slogdet(ratio)[1]))


def factorise(matrix: Array64) -> Array64:
    """Compute the lower Cholesky factor ``(D, D)``.

    Eigenvalues that are not positive in double precision are raised, so no finite symmetric matrix is refused.
    """
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(symmetric(matrix))
        raised = np.maximum(values, max(_LEAST_RATIO * float(np.abs(values).max()), 1e-200))
        # The triangular factor of a Gram matrix, by its root's QR decomposition: it exists for all of them.
        _, upper = np.linalg.qr((vectors * np.sqrt(raised)).T)
        return np.asarray((upper * np.where(upper.diagonal() < 0, -1.0, 1.0)[:, None]).T, dtype=np.float64)


def invert(matrix: Array64) -> Array64:
    """Compute the inverse ``(D, D)``, or the pseudoinverse if that does not exist.

    Declarations and answers of all magnitudes must give a release, so no finite matrix is refused.
    """
    try:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix), dtype=np.float64)


def solve_lower(factor: Array64, right: Array64) -> Array64:
    """Compute ``factor^-1 right`` for a lower triangular ``factor`` ``(D, D)``.

    Raises:
        numpy.linalg.LinAlgError: ``factor`` is singular.
    """
    return np.asarray(scipy.linalg.solve_triangular(factor, right, lower=True))
