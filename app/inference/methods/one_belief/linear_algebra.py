"""Symmetric matrices that stay positive definite, whatever the answers are."""

import numpy as np
import scipy

from app.inference.core.model import Array64


def symmetric(matrix: Array64) -> Array64:
    """The symmetric part."""
    return np.asarray(0.5 * (matrix + matrix.T))


def raise_to(matrix: Array64, least: Array64) -> Array64:
    """``matrix`` with the directions in which it is below ``least`` raised to it; both ``(D, D)``."""
    values, vectors = np.linalg.eigh(symmetric(matrix - least))
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T + least)


def mapped(matrix: Array64, factor: Array64) -> Array64:
    """``factor^-1 matrix factor^-T``, with ``factor`` lower triangular or not."""
    half = np.linalg.solve(factor, matrix)
    return symmetric(np.linalg.solve(factor, half.T))


def factor_of(matrix: Array64) -> Array64:
    """The lower Cholesky factor ``(D, D)``."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def inverse_of(matrix: Array64) -> Array64:
    """The inverse ``(D, D)``."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def solve_lower(factor: Array64, right: Array64) -> Array64:
    """``factor^-1 right`` for a lower triangular factor."""
    return np.asarray(scipy.linalg.solve_triangular(factor, right, lower=True))
