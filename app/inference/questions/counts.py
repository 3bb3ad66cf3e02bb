"""The number of units that are there."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import GRID
from app.inference.protocol import Array32, Array64, Integers, Model


@dataclass(frozen=True, slots=True)
class CountSum:
    """How many units have a row; answer ``(1,)``."""

    kind: ClassVar[str] = "count_sum"

    @property
    def length(self) -> int:
        """One value."""
        return 1

    def check(self, model: Model, design: Design) -> None:
        """Nothing can be wrong with it."""

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """K for every present unit."""
        units = np.count_nonzero(present.reshape(-1, rows_per_unit).any(axis=1))
        return np.array([units * GRID], dtype=np.int64)

    def scales(self, sigma: float) -> float:
        """``sigma K``."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(1,)``, in units."""
        return noised.astype(np.float64) / GRID
