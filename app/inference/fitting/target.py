"""The Gaussian that a fit aims at, and the distance to it: ``KL(N(a, P^-1) || N(mean, precision^-1))`` in nats."""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64

LARGEST_MEAN = 1e50
LARGEST_PRECISION = 1e100
_ROUNDING = 1e-2
"""What rounding may change of a matrix in any direction, relative to what it says there."""


@dataclass(frozen=True, slots=True)
class Target:
    """``N(mean, precision^-1)``, shapes ``(D,)`` and ``(D, D)``, positive definite."""

    mean: Array64
    precision: Array64


def target_of(mean: Array64, precision: Array64, prior_precision: Array64) -> Target:
    """The target as given where it is a Gaussian, else one near it that a posterior could be.

    What is not finite becomes the prior's (mean 0); a precision that is not positive definite keeps what it holds
    beyond the prior in the positive semi-definite sense, on top of the prior's ``(D, D)`` precision.
    """
    mean = np.where(np.isfinite(mean), np.clip(mean, -LARGEST_MEAN, LARGEST_MEAN), 0.0)
    if not np.all(np.isfinite(precision)):
        return Target(mean, prior_precision)
    precision = np.clip(precision, -LARGEST_PRECISION, LARGEST_PRECISION)
    precision = 0.5 * (precision + precision.T)
    if inverse_root(precision) is None:
        values, vectors = np.linalg.eigh(precision - prior_precision)
        precision = prior_precision + (vectors * np.maximum(values, 0)) @ vectors.T
    return Target(mean, precision if inverse_root(precision) is not None else prior_precision)


def inverse_root(matrix: Array64) -> Array64 | None:
    """``W`` with ``W matrix W' = I``, by Cholesky without a ridge; None for what is not positive definite."""
    factor, fault = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    if fault or not np.all(np.isfinite(factor)):
        return None
    inverse, fault = scipy.linalg.lapack.dtrtri(factor, lower=1)
    return None if fault or not np.all(np.isfinite(inverse)) else np.asarray(inverse)


def is_resolved(matrix: Array64, root: Array64) -> bool:
    """Whether rounding leaves its smallest directions standing: a condition number, whatever the columns' units.

    A posterior that fails is sharper in some directions than its numbers tell of others, so any divergence is fiction.
    """
    columns = np.sqrt(np.diag(matrix))
    condition = float(np.sum(np.square(root * columns))) * len(matrix)
    return condition * float(np.finfo(np.float64).eps) < _ROUNDING


def divergence(mean: Array64, root: Array64, target: Target) -> float:
    """``KL(N(mean, (W'W)) || target)`` for the inverse root ``W`` of the precision; infinite beyond all numbers.

    The trace and the determinants nearly cancel near the target, so the sum runs over the eigenvalues of the
    target's precision as W sees it, each term accurate by itself.
    """
    seen = root @ target.precision @ root.T
    gap = mean - target.mean
    if not np.all(np.isfinite(seen)):
        return float("inf")
    excess = np.linalg.eigvalsh(0.5 * (seen + seen.T) - np.eye(len(mean)))
    excess = np.maximum(excess, np.finfo(np.float64).eps - 1)
    value = 0.5 * float(gap @ target.precision @ gap) + 0.5 * float(np.sum(excess - np.log1p(excess)))
    return max(value, 0.0) if np.isfinite(value) else float("inf")
