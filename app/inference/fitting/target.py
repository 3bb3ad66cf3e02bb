"""The target Gaussian of a fit and the divergence from it.

The divergence is ``KL(N(a, P^-1) || N(mean, precision^-1))`` in nats.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64

LARGEST_MEAN = 1e50
LARGEST_PRECISION = 1e100
_ROUNDING = 1e-2
"""Largest relative rounding error of a matrix in any direction."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Gaussian ``N(mean, precision^-1)``; ``precision`` is positive definite.

    Shapes are ``(D,)`` and ``(D, D)``.
    """

    mean: Array64
    precision: Array64


def make_target(mean: Array64, precision: Array64, prior_mean: Array64, prior_precision: Array64) -> Target:
    """Make a valid target: the given one if it is a Gaussian, else one near it.

    Numbers that are not finite become the prior's. For a precision that is not positive definite, the
    positive semi-definite part of its difference from the prior's ``(D, D)`` precision is added to the latter.
    """
    mean = np.where(np.isfinite(mean), np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN), prior_mean)
    if not np.all(np.isfinite(precision)):
        return Target(mean, prior_precision)
    precision = np.clip(precision, -LARGEST_PRECISION, LARGEST_PRECISION)
    precision = 0.5 * (precision + precision.T)
    if compute_inverse_root(precision) is None:
        values, vectors = np.linalg.eigh(precision - prior_precision)
        precision = prior_precision + (vectors * np.maximum(values, 0)) @ vectors.T
    return Target(mean, precision if compute_inverse_root(precision) is not None else prior_precision)


def compute_inverse_root(matrix: Array64) -> Array64 | None:
    """Compute ``W`` with ``W matrix W' = I`` by Cholesky factorisation, without a ridge.

    None if ``matrix`` is not positive definite.
    """
    factor, fault = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    if fault or not np.all(np.isfinite(factor)):
        return None
    inverse, fault = scipy.linalg.lapack.dtrtri(factor, lower=1)
    return None if fault or not np.all(np.isfinite(inverse)) else np.asarray(inverse)


def is_well_conditioned(matrix: Array64, root: Array64) -> bool:
    """Whether rounding errors are small in every direction, judged by a scale-invariant condition number.

    Otherwise some directions are so precise that rounding errors hide others, and no divergence can be computed.
    """
    columns = np.sqrt(np.diag(matrix))
    condition = float(np.sum(np.square(root * columns))) * len(matrix)
    return condition * float(np.finfo(np.float64).eps) < _ROUNDING


def compute_divergence(mean: Array64, root: Array64, target: Target) -> float:
    """Compute ``KL(N(mean, W'W) || target)`` for the inverse root ``W`` of the precision.

    It is infinite on overflow. Near the target the trace and the determinants nearly cancel. So the sum runs over the
    eigenvalues of the target's precision whitened by W, where each term is accurate.
    """
    whitened = root @ target.precision @ root.T
    gap = mean - target.mean
    if not np.all(np.isfinite(whitened)):
        return float("inf")
    excess = np.linalg.eigvalsh(0.5 * (whitened + whitened.T) - np.eye(len(mean)))
    excess = np.maximum(excess, np.finfo(np.float64).eps - 1)
    value = 0.5 * float(gap @ target.precision @ gap) + 0.5 * float(np.sum(excess - np.log1p(excess)))
    return max(value, 0.0) if np.isfinite(value) else float("inf")
