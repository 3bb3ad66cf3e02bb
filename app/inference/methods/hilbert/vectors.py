"""Vectors of log-likelihoods and their sparse non-negative sums (thesis, section 2.5.2).

Every solver takes vectors ``(n, J)`` and a size M, and returns a :class:`Selection` whose weighted sum approximates the
sum ``L`` of all vectors. The error of a selection is ``|L - sum_i w_i v_i|``.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array32, Array64
from app.inference.methods.public_table import Selection

TINY = 1e-300


@dataclass(frozen=True, slots=True)
class VectorSum:
    """Vectors by direction and length, and their sum.

    ``directions`` ``(n, J)`` have unit length or are zero, ``lengths`` is ``(n,)`` and ``total`` ``(J,)``.
    """

    directions: Array32
    lengths: Array64
    total: Array64

    @np.errstate(invalid="ignore")
    def align(self, targets: Array64) -> Array32:
        """Compute the products of all directions with ``targets``, in single precision.

        ``targets`` are ``(J,)`` or ``(J, k)``. Vector units of some processors warn of lanes that hold no number.
        """
        products: Array32 = self.directions @ targets.astype(np.float32)
        return products

    def direction(self, index: int) -> Array64:
        """Return a row's direction, of unit length in double precision, or zero."""
        direction = self.directions[index].astype(np.float64)
        return np.asarray(direction / max(float(np.linalg.norm(direction)), TINY))


def sum_vectors(vectors: Array32) -> VectorSum:
    """Sum ``vectors`` ``(n, J)`` in double precision; they become the directions in place."""
    total = vectors.sum(axis=0, dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    vectors /= np.where(lengths > 0, lengths, 1).astype(np.float32)[:, None]
    return VectorSum(vectors, lengths, total)


def collect(weights: dict[int, float]) -> Selection:
    """Make a selection from ``weights`` by row; zero weights are left out."""
    positive = {index: weight for index, weight in sorted(weights.items()) if weight > 0}
    return Selection(np.array(list(positive), dtype=np.int64), np.array(list(positive.values()), dtype=np.float64))
