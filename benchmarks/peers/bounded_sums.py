"""Sums of bounded contributions, and the whitening of rows by noised second moments.

Two ways bound a row's score. *Clipping* scales the score itself, which moves the mode. *Weighing* gives the row a
weight that depends on its features alone, so the weighted score keeps the mean zero at the truth.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array64
from benchmarks.peers.problem import Problem

_TINY: Final = 1e-300
_FLOOR: Final = 0.5
"""Eigenvalues below this share of the noise's largest expected one are raised to it."""


def compute_factors(lengths: Array64, residual: Array64, clip: float, *, weigh: bool) -> Array64:
    """Compute factors ``(n,)`` that bound scores to the norm ``clip``.

    ``lengths`` ``(n,)`` are lengths of the rows.
    """
    size = lengths if weigh else np.abs(residual) * lengths
    return np.asarray(np.minimum(1, clip / np.maximum(size, _TINY)))


def sum_hessians(z: Array64, variance: Array64, factors: Array64, limit: float) -> Array64:
    """Sum ``factor * variance * z z'``, each of Frobenius norm at most ``limit``."""
    weight = np.minimum(factors * variance, limit / np.maximum(np.vecdot(z, z), _TINY))
    return np.asarray((z * weight[:, None]).T @ z)


def draw_symmetric(rng: np.random.Generator, dimension: int, sigma: float) -> Array64:
    """Draw the noise of a symmetric matrix.

    ``sigma`` is the noise multiplier times the sensitivity in the Frobenius norm.

    Entries outside the diagonal appear twice in the norm, so the upper triangle needs half of their variance.
    """
    upper = np.triu(rng.standard_normal((dimension, dimension)), 1) / math.sqrt(2)
    return np.asarray(sigma * (upper + upper.T + np.diag(rng.standard_normal(dimension))))


def lift_eigenvalues(matrix: Array64, sigma: float) -> tuple[Array64, Array64]:
    """Raise the small eigenvalues of a noised matrix; gives eigenvalues and eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return np.maximum(values, _FLOOR * sigma * math.sqrt(2 * len(values))), vectors


def whiten(problem: Problem, mu: float, rng: np.random.Generator) -> Array64:
    """Compute the inverse root ``(D, D)`` of noised second moments, at the price mu."""
    sigma = problem.norm**2 / mu
    moments = problem.x.T @ problem.x + draw_symmetric(rng, problem.parameters, sigma)
    values, vectors = lift_eigenvalues(moments, sigma)
    return np.asarray((vectors / np.sqrt(values / problem.rows)) @ vectors.T)
