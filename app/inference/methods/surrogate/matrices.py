"""Matrices that are to be inverted, whatever rounding or answers made of them."""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64

LARGEST_INFORMATION = 1e30
_LEAST_EIGENVALUE, _LEAST_PIVOT = 1e-12, 1e-13
"""Of a matrix with ones on its diagonal: a thousand times what rounding makes of it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """``L`` ``(D, D)``, lower triangular, with ``L L'`` an information, and its inverse W."""

    factor: Array64
    whitening: Array64


def metric(information: Array64) -> Metric:
    """In which ``information`` ``(D, D)`` is the identity."""
    factor = np.asarray(np.linalg.cholesky(information), dtype=np.float64)
    return Metric(factor, np.asarray(scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)))


def symmetric(matrix: Array64) -> Array64:
    """What rounding left of its symmetry, restored."""
    return 0.5 * (matrix + matrix.T)


def sound(matrix: Array64) -> Array64 | None:
    """``matrix`` ``(D, D)`` where it is positive definite, else one near it that is; None for what is no matrix.

    Near in the metric of its own diagonal, so that units of parameters do not matter.
    """
    diagonal = matrix.diagonal()
    if not (np.all(np.isfinite(matrix)) and np.all(diagonal > 0) and np.all(diagonal <= LARGEST_INFORMATION)):
        return None
    if _invertible(matrix):
        return matrix
    scale = np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    mended = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T * np.outer(scale, scale)
    mended = symmetric(mended)
    return mended if _invertible(mended) else None


def _invertible(matrix: Array64) -> bool:
    try:
        pivots = np.linalg.cholesky(matrix).diagonal()
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.square(pivots) >= _LEAST_PIVOT * matrix.diagonal()))
