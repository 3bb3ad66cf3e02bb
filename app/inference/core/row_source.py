"""The private table as methods see it: units by slot, through one method."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

PRESENT: Final = "_present"
"""Says beside the declared columns whether a row is there; no declared column can have this name."""


class RowSource(Protocol):
    """Implemented by the enclave (encrypted storage) and by generators in tests and benchmarks."""

    slots: int
    """Units that there is room for."""

    rows_per_slot: int
    """Rows of a unit: fewer are padded with null rows."""

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The declared columns of the units at sorted, unique ``indices``, plus :data:`PRESENT` (uint8).

        Each is an array of ``len(indices) * rows_per_slot`` values, all rows of a unit next to each other.
        real, integer: float64, clamped; binary: float64 0/1; categorical: integer code in declared order.
        A null row is not present, and zero everywhere.
        """
