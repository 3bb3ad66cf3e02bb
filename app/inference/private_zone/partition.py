"""Partition of a query into parts, and exact sums over parts of a table.

Contributions are computed in blocks of units, because single precision may round a row differently in a block of
another shape. Parts begin where blocks begin. So every unit has the same neighbours in its block for every partition.
The sums of parts then add up to the sum of the whole, bit by bit. Blocks and chunks are powers of two of units.
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
from app.inference.private_zone.read_ahead import read_ahead
from app.privacy.events import flatten

CHUNK_ROWS = 1 << 16
"""Rows of a chunk, which is read at once; more only if one unit has more."""

_CHUNK_VALUES = 1 << 20
"""Values of a chunk; more only if one block has more."""

_COPIED_ROWS, _COPIED_COLUMNS = 8000, 64
"""Rows and columns that are copied at once. A power of two of rows would map all columns to the same cache sets."""
_LARGEST_LEARNT = 24 << 20

Slots = range | NDArray[np.integer]
"""Units: consecutive ones, or sorted and unique ones."""

Summation = Callable[[Query, Slots], Integers]
"""Computes the exact sum of a query over units, possibly elsewhere. A fault among the rows raises an exception."""


def largest_query(plan: MechanismPlan, facts: DeclaredFacts) -> float:
    """Compute the largest expected number of rows that a query of ``plan`` reads."""
    rates = (event.sampling_rate for event, _ in flatten(plan.events))
    return max(rates, default=0.0) * facts.slots * facts.rows_per_unit


def chunk_units(rows_per_unit: int, row_width: int = 1) -> int:
    """Compute the number of units in a chunk: a whole number of blocks for every query."""
    rows = max(MOST_ROWS, min(CHUNK_ROWS, _CHUNK_VALUES // row_width))
    return power_of_two(rows // rows_per_unit)


def cuts(units: int, rows_per_unit: int, parts: int) -> list[int]:
    """Cut ``units`` units into at most ``parts`` nearly equal parts.

    Returns:
        The start of each part, and the end of the last one.
    """
    chunk = chunk_units(rows_per_unit)
    chunks = -(-units // chunk)
    count = max(1, min(parts, chunks))
    return [min(units, chunk * (chunks * part // count)) for part in range(count)] + [units]


def partial_sum(query: Query, model: Model, design: Design, source: RowSource, slots: Slots) -> Integers:
    """Compute the exact sum of ``query`` over the units at ``slots``, in bounded memory.

    A chunk is read, decrypted and encoded while the one before it is folded and summed, which takes about as long. So
    memory holds two chunks. Row zone: total in the rows; only ``source`` may raise, for reasons that do not depend on
    row values. It is called by one thread at a time, which may not be the caller's, and not after the return.
    """
    each, chunk = source.rows_per_slot, chunk_units(source.rows_per_slot, model.row_width)
    _raise_trim_threshold()
    total: Integers | None = None

    def read(start: int) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        return _encode(design, source, slots[start : start + chunk])

    with closing(read_ahead(read, range(0, max(1, len(slots)), chunk))) as chunks:
        for x, y, present in chunks:
            part = query.sum(model, _fold_row_major(model, x, y), present, each)
            total = part if total is None else total + part
    assert total is not None
    return total


def gather(model: Model, design: Design, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """Read and fold all units at ``slots`` chunk by chunk, into one array; as :func:`fold`."""
    each, chunk = source.rows_per_slot, chunk_units(source.rows_per_slot, model.row_width)
    rows = np.empty((len(slots) * each, model.row_width), dtype=np.float32)
    present = np.empty(len(slots) * each, dtype=bool)
    _raise_trim_threshold()
    for start in range(0, len(slots), chunk):
        place = slice(start * each, (start + chunk) * each)
        rows[place], present[place] = fold(model, design, source, slots[start : start + chunk])
    return rows, present


def fold(model: Model, design: Design, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """Read and fold the rows of the units at ``slots``. Row zone.

    Returns:
        Folded rows ``(n * rows_per_slot, row_width)``, and their presence.
    """
    x, y, present = _encode(design, source, slots)
    return _fold_row_major(model, x, y), present


def _encode(design: Design, source: RowSource, slots: Slots) -> tuple[Array32, Array64, NDArray[np.bool_]]:
    """Read design rows, targets and presence of the units at ``slots``."""
    indices = np.arange(slots.start, slots.stop) if isinstance(slots, range) else slots.astype(np.int64, copy=False)
    return design.encode(source.gather(indices))


def _raise_trim_threshold() -> None:
    """Make the allocator reuse the memory of one chunk for the next.

    The GNU allocator returns memory to the system when free memory exceeds twice the largest array that it has mapped
    and freed. Getting cleared memory back for every chunk took longer than the work on it. Allocating one untouched
    array raises that threshold; its size is below the one from which the allocator stops adapting.
    """
    np.empty(_LARGEST_LEARNT, dtype=np.uint8)


def _fold_row_major(model: Model, x: Array32, y: Array64) -> Array32:
    """Fold rows into a row-major array, in pieces that fit the cache."""
    folded = np.empty((len(x), model.row_width), dtype=np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), _COPIED_ROWS):
            part = slice(start, start + _COPIED_ROWS)
            rows = model.fold(x[part], y[part].astype(np.float32))
            for first in range(0, model.row_width, _COPIED_COLUMNS):
                folded[part, first : first + _COPIED_COLUMNS] = rows[:, first : first + _COPIED_COLUMNS]
    return folded
