"""A table in memory with the interface of sealed tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Table:
    """A table in memory; the column ``_present`` marks its null rows."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], rows_per_slot: int = 1) -> None:
        self.columns = dict(columns)
        self.rows_per_slot = rows_per_slot
        self.slots = len(self.columns["_present"]) // rows_per_slot
        self.gathered: list[NDArray[np.int64]] = []

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        self.gathered.append(indices)
        shape = (self.slots, self.rows_per_slot)
        return {name: values.reshape(shape)[indices].ravel() for name, values in self.columns.items()}
