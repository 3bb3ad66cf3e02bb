"""Non-negative orthogonal matching pursuit: add the row most aligned with the residual, then refit all weights.

The refit is non-negative least squares on the rows chosen so far (Lawson & Hanson 1974, chapter 23), started from
the last one's active set, on the Gram matrix of their directions.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.hilbert.vectors import Selection, VectorSum, collect

_ALIGNED = 1e-6
"""A residual with a smaller share than this along every direction (single precision) cannot be reduced."""
_OPTIMAL = 1e-9
_RIDGE = 1e-12


def omp(vectors: VectorSum, size: int) -> Selection:
    """At most ``size`` rows: those with positive weight of ``size`` that were chosen."""
    if not np.any(vectors.total):
        return collect({})
    chosen: list[int] = []
    basis = np.zeros((0, len(vectors.total)))
    weights = np.zeros(0)
    for _ in range(size):
        residual = vectors.total - weights @ basis
        alignment = vectors.directions @ residual.astype(np.float32)
        alignment[chosen] = -np.inf
        index = int(np.argmax(alignment))
        if alignment[index] <= _ALIGNED * float(np.linalg.norm(residual)):
            break
        chosen.append(index)
        basis = np.vstack((basis, vectors.direction(index)))
        weights = nonnegative_least_squares(basis, vectors.total, np.append(weights, 0.0))
    lengths = vectors.lengths[chosen]
    return collect(dict(zip(chosen, (weights / lengths).tolist(), strict=True)))


def nonnegative_least_squares(basis: Array64, target: Array64, start: Array64) -> Array64:
    """``argmin_{w >= 0} |target - w @ basis|`` for unit rows ``basis`` ``(k, J)``, from feasible ``start``."""
    gram, right = basis @ basis.T, basis @ target
    tolerance = _OPTIMAL * float(np.linalg.norm(target))
    weights, active = start.copy(), start > 0
    for _ in range(3 * len(start) + 1):
        gradient = np.where(active, -np.inf, right - gram @ weights)
        entering = int(np.argmax(gradient))
        if gradient[entering] <= tolerance:
            break
        active[entering] = True
        weights, active = _descend(gram, right, weights, active)
    return weights


def _descend(
    gram: Array64, right: Array64, weights: Array64, active: NDArray[np.bool_]
) -> tuple[Array64, NDArray[np.bool_]]:
    """The least squares solution on the largest part of ``active`` that stays non-negative on the way there."""
    while np.any(active):
        proposal = np.zeros_like(weights)
        proposal[active] = _solve(gram[np.ix_(active, active)], right[active])
        falling = active & (proposal <= 0)
        if not np.any(falling):
            return proposal, active
        share = weights[falling] / np.maximum(weights[falling] - proposal[falling], 1e-300)
        weights = weights + float(share.min()) * (proposal - weights)
        weights[np.flatnonzero(falling)[share <= share.min()]] = 0
        active = active & (weights > 0)
    return np.zeros_like(weights), active


def _solve(gram: Array64, right: Array64) -> Array64:
    lifted = gram + _RIDGE * np.eye(len(gram))
    _, solution, _ = scipy.linalg.lapack.dposv(lifted, right, lower=1)
    return np.asarray(solution)
