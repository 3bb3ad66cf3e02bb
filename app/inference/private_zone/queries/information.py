"""Clipped sums of Fisher information matrices, in the metric of a transform.

Factors are rounded, not their products. A unit's factors ``f`` are scaled together and rounded to integer vectors ``k``
with ``sum |k|**2 <= K``. Because ``|k k'|_F = |k|**2``, the triangle inequality bounds the Frobenius norm of its
integer matrix ``sum k k'`` by K exactly. So one unit moves the upper triangle by at most K in the norm that counts
off-diagonal values twice. Noise of ``sigma K`` on the diagonal and ``sigma K / sqrt(2)`` off it is isotropic in that
norm.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, raise_clip, scale_factors_to_grid
from app.inference.private_zone.queries.blocks import check_array, iterate_unit_blocks


@dataclass(frozen=True, slots=True, eq=False)
class InformationSum:
    """A sum of clipped information matrices, ``sum_b min(1, R / |F|**2) F'F``.

    ``F`` holds a unit's information factors at ``theta`` times W'. ``theta`` is ``(D,)``, ``transform`` W is ``(D,
    D)``, and ``bound`` R is the largest Frobenius norm of a unit's matrix. The answer is ``(D, D)``, symmetric.
    """

    theta: Array64
    transform: Array64
    bound: float
    kind: ClassVar[str] = "information_sum"

    @property
    def length(self) -> int:
        """``D**2``, as for every symmetric matrix in a plan."""
        return len(self.theta) ** 2

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless all arrays are finite and of the shape of ``model``'s parameter."""
        check_array(self.theta, (model.dimension,), "theta")
        check_array(self.transform, (model.dimension, model.dimension), "transform")
        raise_clip(self.bound)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the upper triangle, row by row, as :meth:`app.inference.core.query.Query.sum`."""
        side, bound = len(self.theta), raise_clip(self.bound)
        total = np.zeros((side, side), dtype=np.int64)
        with np.errstate(all="ignore"):
            transposed = self.transform.T.astype(np.float32)
            for block, there in iterate_unit_blocks(rows, present, rows_per_unit, side):
                factors = model.information_factors(block, self.theta).reshape(-1, side) @ transposed
                factors = factors[: len(factors) // len(block) * len(there)]
                together = factors.reshape(len(there) // rows_per_unit, -1)
                scale_factors_to_grid(together, there.reshape(-1, rows_per_unit), bound)
                integers = factors.astype(np.float64)
                total += (integers.T @ integers).astype(np.int64)
        return total[np.triu_indices(side)]

    def scales(self, sigma: float) -> Array64:
        """``sigma K`` on the diagonal, ``sigma K / sqrt(2)`` off it."""
        row, column = np.triu_indices(len(self.theta))
        return np.where(row == column, sigma * GRID, sigma * GRID / math.sqrt(2))

    def answer(self, noised: Integers) -> Array64:
        """Convert to a symmetric matrix ``(D, D)`` in the transformed coordinates."""
        matrix = np.zeros((len(self.theta),) * 2)
        matrix[np.triu_indices(len(self.theta))] = noised * (raise_clip(self.bound) / GRID)
        return matrix + np.triu(matrix, 1).T
