"""Frank-Wolfe algorithm for the squared error over a polytope, with exact line search.

Weights stay in ``{w >= 0, sum_n |v_n| w_n = s}`` with ``s = sum_n |v_n|``. Each vertex has all weight on one row:
``s v_n / |v_n|``. With k rows the squared error is at most ``4 s^2 / (k + 3)``. Source: Campbell & Broderick, JMLR
2019, Algorithm 2.
"""

import numpy as np

from app.inference.methods.hilbert.vectors import VectorSum, collect
from app.inference.methods.public_table import Selection


def frank_wolfe(vectors: VectorSum, size: int) -> Selection:
    """Select at most ``size`` rows, one step for each."""
    radius = float(vectors.lengths.sum())
    if radius == 0:
        return collect({})
    weights: dict[int, float] = {}
    current = np.zeros_like(vectors.total)
    for _ in range(size):
        residual = vectors.total - current
        index = int(np.argmax(vectors.align(residual)))
        move = radius * vectors.direction(index) - current
        step = float(np.clip(move @ residual / max(float(move @ move), 1e-300), 0, 1)) if weights else 1.0
        if step == 0:
            break
        weights = {row: weight * (1 - step) for row, weight in weights.items()}
        weights[index] = weights.get(index, 0.0) + step * radius / float(vectors.lengths[index])
        current = current + step * move
    return collect(weights)
