"""The protocol of tables: units are read by slot, through one method."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

PRESENT: Final = "_present"
"""The name of the column that states whether a row is present; no declared column can have it."""


class RowSource(Protocol):
    """A table of privacy units; the enclave implements it, and so do generators in tests and benchmarks."""

    slots: int
    """The number of units, null units included."""

    rows_per_slot: int
    """Rows of each unit; missing ones are null rows."""

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """Read the declared columns of the units at ``indices``, plus :data:`PRESENT` (uint8).

        Args:
            indices: slots, sorted and unique.

        Returns:
            An array of ``len(indices) * rows_per_slot`` values for each column; the rows of a unit are next to each
            other. Real and integer columns are float64, clamped to the bounds; binary ones float64 0 or 1; categorical
            ones integer codes in declared order. A null row is not present, and zero everywhere.
        """
