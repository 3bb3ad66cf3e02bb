"""Non-negative orthogonal matching pursuit (OMP).

Each step adds the row most aligned with the residual, then fits all weights again. The fit is non-negative least
squares on the chosen rows (Lawson & Hanson 1974, chapter 23), on the Gram matrix of their directions. It starts from
the active set of the last fit.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.hilbert.vectors import TINY, VectorSum, collect
from app.inference.methods.public_table import Selection

_ALIGNED = 1e-6
"""If the residual's share along every direction is smaller, single precision cannot reduce it further."""
_OPTIMAL = 1e-9
_RIDGE = 1e-12


def omp(vectors: VectorSum, size: int, start: Selection | None = None) -> Selection:
    """Choose ``size`` rows, and select those with positive weight.

    ``start`` is a selection of at most ``size`` rows. The search fits it, drops rows whose weights reach zero, and adds
    rows.
    """
    if not np.any(vectors.total):
        return collect({})
    chosen, basis, weights = _fit_start(vectors, start)
    gram, right = basis @ basis.T, basis @ vectors.total
    for _ in range(size - len(chosen)):
        residual = vectors.total - weights @ basis
        alignment = vectors.align(residual)
        alignment[chosen] = -np.inf
        index = int(np.argmax(alignment))
        if alignment[index] <= _ALIGNED * float(np.linalg.norm(residual)):
            break
        added = vectors.direction(index)
        edge = basis @ added
        gram = np.block([[gram, edge[:, None]], [edge, added @ added]])
        right = np.append(right, added @ vectors.total)
        chosen.append(index)
        basis = np.vstack((basis, added))
        weights = _minimise(gram, right, np.append(weights, 0.0), _OPTIMAL * float(np.linalg.norm(vectors.total)))
    lengths = vectors.lengths[chosen]
    return collect(dict(zip(chosen, (weights / lengths).tolist(), strict=True)))


def _fit_start(vectors: VectorSum, start: Selection | None) -> tuple[list[int], Array64, Array64]:
    """Fit the rows of ``start``: indices, directions and weights of those with positive weight."""
    if start is None:
        return [], np.zeros((0, len(vectors.total))), np.zeros(0)
    places = start.indices
    basis = vectors.directions[places].astype(np.float64)
    basis /= np.maximum(np.linalg.norm(basis, axis=1, keepdims=True), TINY)
    given = start.weights * vectors.lengths[places]
    weights, is_used = _descend(basis @ basis.T, basis @ vectors.total, given, given > 0)
    return places[is_used].tolist(), basis[is_used], weights[is_used]


def nonnegative_least_squares(basis: Array64, target: Array64, start: Array64) -> Array64:
    """Minimise ``|target - w @ basis|`` over ``w >= 0``.

    ``basis`` ``(k, J)`` has unit rows; ``start`` ``(k,)`` is feasible.
    """
    return _minimise(basis @ basis.T, basis @ target, start, _OPTIMAL * float(np.linalg.norm(target)))


def _minimise(gram: Array64, right: Array64, start: Array64, tolerance: float) -> Array64:
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
    """Move to the least squares solution on ``active``; weights that reach zero leave it."""
    while np.any(active):
        proposal = np.zeros_like(weights)
        proposal[active] = _solve(gram[np.ix_(active, active)], right[active])
        is_negative = active & (proposal <= 0)
        if not np.any(is_negative):
            return proposal, active
        share = weights[is_negative] / np.maximum(weights[is_negative] - proposal[is_negative], 1e-300)
        weights = weights + float(share.min()) * (proposal - weights)
        weights[np.flatnonzero(is_negative)[share <= share.min()]] = 0
        active = active & (weights > 0)
    return np.zeros_like(weights), active


def _solve(gram: Array64, right: Array64) -> Array64:
    lifted = gram + _RIDGE * np.eye(len(gram))
    _, solution, _ = scipy.linalg.lapack.dposv(lifted, right, lower=1)
    return np.asarray(solution)
