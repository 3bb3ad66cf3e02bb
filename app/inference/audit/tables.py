"""Simulated tables in which one unit, the canary, may be present or not."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.row_source import PRESENT

Row = Mapping[str, float]


class CanaryTable:
    """A table whose unit ``place`` holds ``rows``, and whose other units hold ``others`` each.

    A unit without rows is null. So tables with and without ``rows`` are neighbours, and with the default ``others`` all
    units but one contribute nothing.
    """

    def __init__(self, facts: DeclaredFacts, place: int, rows: Sequence[Row], others: Sequence[Row] = ()) -> None:
        self.facts, self.place, self.rows, self.others = facts, place, rows, others
        self.slots, self.rows_per_slot = facts.slots, facts.rows_per_unit

    def without(self) -> "CanaryTable":
        """Make the neighbour, whose unit ``place`` is null."""
        return CanaryTable(self.facts, self.place, (), self.others)

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """Read units as :meth:`app.inference.core.row_source.RowSource.gather`."""
        each = self.rows_per_slot
        columns = {column.name: np.zeros((len(indices), each)) for column in self.facts.columns}
        present = np.zeros((len(indices), each), dtype=np.uint8)
        is_canary = np.asarray(indices) == self.place
        for chosen, rows in ((is_canary, self.rows), (~is_canary, self.others)):
            for number, row in enumerate(rows):
                present[chosen, number] = 1
                for name, value in row.items():
                    columns[name][chosen, number] = value
        return {name: values.ravel() for name, values in columns.items()} | {PRESENT: present.ravel()}


def make_facts(columns: tuple[Column, ...], slots: int, rows_per_unit: int, *, grouped: bool = False) -> DeclaredFacts:
    """Declare a private table of ``columns``, with units of one row or of several.

    If ``grouped``, a column names the unit of one row, too.
    """
    several = {"kind": "column", "column": "unit", "max_rows": rows_per_unit}
    unit = several if grouped or rows_per_unit > 1 else {"kind": "row"}
    return DeclaredFacts(columns, slots, unit, "private", 1e-6)
