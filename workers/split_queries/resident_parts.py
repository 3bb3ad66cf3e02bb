"""Sums over parts of one table, whose rows stay in memory between queries."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from app.inference.conjugate import RowProblem
from app.inference.core.model import Array32
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import Slots, compute_partial_sum, gather
from app.inference.private_zone.rows import RESIDENT_BYTES

Rows = tuple[Array32, NDArray[np.bool_]]
OpenRows = Callable[[], AbstractContextManager[RowSource]]
"""Opens the table; called only if the rows are not in memory."""


class PartSummer:
    """Sums over parts of one attempt's table.

    Keeps the rows of consecutive units in memory, because the next query needs them again. Rows of a random sample are
    not kept.
    """

    def __init__(self, problem: RowProblem, rows_per_unit: int, room_bytes: int = RESIDENT_BYTES) -> None:
        self._problem = problem
        self._rows_per_unit = rows_per_unit
        self._free_bytes = room_bytes
        self._rows: dict[range, Rows] = {}

    def sum(self, query: Query, units: Slots, open_rows: OpenRows) -> Integers:
        """Compute the exact sum over ``units``. Total in the rows; only ``open_rows`` and the table may fail."""
        model, design = self._problem.model, self._problem.design
        if isinstance(units, range) and units in self._rows:
            return query.sum(model, *self._rows[units], self._rows_per_unit)
        with open_rows() as source:
            if isinstance(units, range) and self._reserve_memory(len(units)):
                self._rows[units] = gather(model, design, source, units)
                return query.sum(model, *self._rows[units], self._rows_per_unit)
            return compute_partial_sum(query, model, design, source, units)

    def _reserve_memory(self, units: int) -> bool:
        needed = units * self._rows_per_unit * (4 * self._problem.model.row_width + 1)
        if needed > self._free_bytes:
            return False
        self._free_bytes -= needed
        return True


class SummerCache:
    """Keeps the summer of the latest attempt in memory.

    It is dropped when another attempt needs one, or after ``idle_seconds`` without use.
    """

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._attempt: tuple[str, int] | None = None
        self._summer: PartSummer | None = None
        self._timer: threading.Timer | None = None

    def get(self, attempt: tuple[str, int], make_summer: Callable[[], PartSummer]) -> PartSummer:
        """Return the cached or a new summer of ``attempt``, and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        summer = self._summer
        if summer is None or self._attempt != attempt:
            summer = make_summer()
        self._attempt, self._summer = attempt, summer
        return summer

    def start_timer(self) -> None:
        """Forget the summer after ``idle_seconds``, unless :meth:`get` is called before."""
        self._timer = threading.Timer(self._idle_seconds, self.forget)
        self._timer.daemon = True
        self._timer.start()

    def forget(self) -> None:
        self._summer = None
