"""Sums of parts of one table, whose rows stay in memory after the first one, while there is room and use for them."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32
from app.inference.core.problems import Problem
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import Slots, gather, partial_sum
from app.inference.private_zone.rows import RESIDENT_BYTES

Rows = tuple[Array32, NDArray[np.bool_]]
Opening = Callable[[], AbstractContextManager[RowSource]]
"""How to get at the table, for who finds that it needs it."""


class Parts:
    """Parts of one attempt's table. Consecutive units are asked for again by the next query; samples are not."""

    def __init__(self, problem: Problem, rows_per_unit: int, room_bytes: int = RESIDENT_BYTES) -> None:
        self._problem = problem
        self._each = rows_per_unit
        self._room = room_bytes
        self._held: dict[range, Rows] = {}

    def sum(self, query: Query, units: Slots, opening: Opening) -> Integers:
        """The exact sum over ``units``. Total in the rows; only ``opening`` and the table may fail."""
        model, design = self._problem.model, self._problem.design
        if isinstance(units, range) and units in self._held:
            return query.sum(model, *self._held[units], self._each)
        with opening() as source:
            if isinstance(units, range) and self._makes_room(len(units)):
                self._held[units] = gather(model, design, source, units)
                return query.sum(model, *self._held[units], self._each)
            return partial_sum(query, model, design, source, units)

    def _makes_room(self, units: int) -> bool:
        needed = units * self._each * (4 * self._problem.model.row_width + 1)
        if needed > self._room:
            return False
        self._room -= needed
        return True


class Memory:
    """The parts of the attempt that was helped last; forgotten when another one asks, or none does for a while."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._attempt: tuple[str, int] | None = None
        self._parts: Parts | None = None
        self._timer: threading.Timer | None = None

    def of(self, attempt: tuple[str, int], fresh: Callable[[], Parts]) -> Parts:
        """The parts of ``attempt``, those that were kept or ``fresh`` ones."""
        if self._timer is not None:
            self._timer.cancel()
        parts = self._parts
        if parts is None or self._attempt != attempt:
            parts = fresh()
        self._attempt, self._parts = attempt, parts
        return parts

    def keep(self) -> None:
        """Forget unless somebody asks again within ``idle_seconds``."""
        self._timer = threading.Timer(self._idle_seconds, self.forget)
        self._timer.daemon = True
        self._timer.start()

    def forget(self) -> None:
        self._parts = None
