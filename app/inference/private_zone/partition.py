"""A query in parts: which units each part takes, and the exact sum over some units, read from the table as needed.

Contributions are computed in blocks of units, because single precision may round a row otherwise in a block of another
shape. Parts begin where blocks begin, so that every unit meets the same neighbours in a block however a query is split,
and sums of parts are bit-identical to the sum of the whole. Blocks and chunks are powers of two of units.
"""

from collections.abc import Callable
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.queries.blocks import MOST_ROWS, power_of_two
from app.inference.private_zone.read_ahead import one_ahead
from app.privacy.events import flatten

CHUNK_ROWS = 1 << 16
"""Rows that are read together, at most, unless one unit has more."""

_CHUNK_VALUES = 1 << 20
"""Values that are read together, at most, unless one block has more."""

_COPIED_ROWS, _COPIED_COLUMNS = 8000, 64
"""No power of two of rows: columns that far apart would share the cache's sets."""
_LARGEST_LEARNT = 24 << 20

Slots = range | NDArray[np.integer]
"""Units: consecutive ones, or sorted and unique ones."""

Summation = Callable[[Query, Slots], Integers]
"""Carries out the sum over the units of a query somewhere, exactly. A fault among the rows is an exception."""


def largest_query(plan: MechanismPlan, facts: DeclaredFacts) -> float:
    """Rows that the largest query of a plan is expected to read, at most."""
    rates = (event.sampling_rate for event, _ in flatten(plan.events))
    return max(rates, default=0.0) * facts.slots * facts.rows_per_unit


def chunk_units(rows_per_unit: int, row_width: int = 1) -> int:
    """Units that are read and summed together: a whole number of blocks, whatever the query."""
    rows = max(MOST_ROWS, min(CHUNK_ROWS, _CHUNK_VALUES // row_width))
    return power_of_two(rows // rows_per_unit)


def cuts(units: int, rows_per_unit: int, parts: int) -> list[int]:
    """Where at most ``parts`` parts of ``units`` units begin, nearly equal, and where the last one ends."""
    chunk = chunk_units(rows_per_unit)
    chunks = -(-units // chunk)
    count = max(1, min(parts, chunks))
    return [min(units, chunk * (chunks * part // count)) for part in range(count)] + [units]


def partial_sum(query: Query, model: Model, design: Design, source: RowSource, slots: Slots) -> Integers:
    """The exact sum over the units at ``slots``, in bounded memory.

    A chunk is read, opened and encoded while the one before is folded and summed, which takes about as long: two are
    held, of which one is in the making. Row zone: total in what the rows hold; only ``source`` may fail, for reasons of
    its own. It is asked by one thread at a time, which need not be the caller's, and by none after the return.
    """
    each, chunk = source.rows_per_slot, chunk_units(source.rows_per_slot, model.row_width)
    _keep_freed_memory()
    total: Integers | None = None

    def read(start: int) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        return _encode(design, source, slots[start : start + chunk])

    with closing(one_ahead(read, range(0, max(1, len(slots)), chunk))) as chunks:
        for x, y, present in chunks:
            part = query.sum(model, _row_after_row(model, x, y), present, each)
            total = part if total is None else total + part
    assert total is not None
    return total


def gather(model: Model, design: Design, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """All of :func:`fold` at once, read chunk by chunk."""
    each, chunk = source.rows_per_slot, chunk_units(source.rows_per_slot, model.row_width)
    rows = np.empty((len(slots) * each, model.row_width), dtype=np.float32)
    present = np.empty(len(slots) * each, dtype=bool)
    _keep_freed_memory()
    for start in range(0, len(slots), chunk):
        place = slice(start * each, (start + chunk) * each)
        rows[place], present[place] = fold(model, design, source, slots[start : start + chunk])
    return rows, present


def fold(model: Model, design: Design, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """Folded rows ``(n * rows_per_slot, row_width)`` of the units at ``slots`` and their presence. Row zone."""
    x, y, present = _encode(design, source, slots)
    return _row_after_row(model, x, y), present


def _encode(design: Design, source: RowSource, slots: Slots) -> tuple[Array32, Array64, NDArray[np.bool_]]:
    """Design rows, targets and presence of the units at ``slots``."""
    indices = np.arange(slots.start, slots.stop) if isinstance(slots, range) else slots.astype(np.int64, copy=False)
    return design.encode(source.gather(indices))


def _keep_freed_memory() -> None:
    """Let the memory of one chunk serve the next one.

    The GNU allocator returns memory to the system as soon as what is free exceeds twice the largest array that it ever
    mapped and freed; getting it back for every chunk, cleared, took longer than the work on it. One untouched array,
    below the size from which the allocator stops learning, settles that.
    """
    np.empty(_LARGEST_LEARNT, dtype=np.uint8)


def _row_after_row(model: Model, x: Array32, y: Array64) -> Array32:
    """Folded rows in the order in which they are worked on, folded and copied as far as the cache reaches."""
    found = np.empty((len(x), model.row_width), dtype=np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), _COPIED_ROWS):
            part = slice(start, start + _COPIED_ROWS)
            rows = model.fold(x[part], y[part].astype(np.float32))
            for first in range(0, model.row_width, _COPIED_COLUMNS):
                found[part, first : first + _COPIED_COLUMNS] = rows[:, first : first + _COPIED_COLUMNS]
    return found
