"""Hilbert coresets: sparse non-negative sums of vectors that stand for log-likelihoods (thesis, section 2.5.2).

Every solver takes vectors ``(n, J)`` and a size M, and returns a :class:`Selection` whose weighted sum approximates the
sum ``L`` of all vectors. The error of a selection is ``|L - sum_i w_i v_i|``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64

_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Selection:
    """Distinct rows ``indices`` (k,) and their non-negative ``weights`` (k,), k at most the size asked for."""

    indices: NDArray[np.int64]
    weights: Array64


@dataclass(frozen=True, slots=True)
class VectorSum:
    """Directions ``(n, J)`` of unit length (or zero), the lengths ``(n,)`` of the vectors, and their sum ``(J,)``."""

    directions: Array32
    lengths: Array64
    total: Array64

    def direction(self, index: int) -> Array64:
        """That row's direction, of unit length in double precision unless it is zero."""
        found = self.directions[index].astype(np.float64)
        return np.asarray(found / max(float(np.linalg.norm(found)), _TINY))


def vector_sum(vectors: Array32) -> VectorSum:
    """The sum of ``vectors`` ``(n, J)``, which become the directions in place; sums are in double precision."""
    total = vectors.sum(axis=0, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    vectors /= np.where(lengths > 0, lengths, 1).astype(np.float32)[:, None]
    return VectorSum(vectors, lengths, total)


def collect(weights: dict[int, float]) -> Selection:
    """The selection of ``weights`` by row, without those of zero."""
    kept = {index: weight for index, weight in sorted(weights.items()) if weight > 0}
    return Selection(np.array(list(kept), dtype=np.int64), np.array(list(kept.values()), dtype=np.float64))
