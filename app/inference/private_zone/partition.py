"""Partitions a query into parts, and computes exact sums over parts of a table.

Contributions are computed in blocks of units. In single precision, the rounding of a row may depend on the shape of its
block and on the row's place in it. So these must not depend on the partition: every part begins where a block begins.
Then the sums of the parts add up to the sum of the whole, bit by bit. To make this possible, the number of units in a
block and in a chunk is a power of two.
"""

from collections.abc import Callable
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array32, Array64, RowModel
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.core.statistics import RowEncoder
from app.inference.private_zone.queries.blocks import MOST_ROWS, compute_power_of_two
from app.inference.private_zone.read_ahead import read_ahead
from app.privacy.events import flatten

CHUNK_ROWS = 1 << 16
"""Largest number of rows that are read at once, as one chunk. A unit with more rows is one chunk."""

_CHUNK_VALUES = 1 << 20
"""Largest number of values in a chunk, unless a single block has more."""

_COPIED_ROWS, _COPIED_COLUMNS = 8000, 64
"""Numbers of rows and columns that are copied at once.

The number of rows is no power of two, because then all columns would compete for the same cache sets.
"""
_LARGEST_LEARNT = 24 << 20

Slots = range | NDArray[np.integer]
"""The slots of units: a range, or a sorted array without duplicates."""

Summation = Callable[[Query, Slots], Integers]
"""Computes the exact sum of a query over units, possibly with the help of other processes.

It raises an exception if the computation on rows fails in another process.
"""


def compute_largest_query(plan: MechanismPlan, facts: DeclaredFacts) -> float:
    """Compute the largest expected number of rows that a query of ``plan`` reads."""
    rates = (event.sampling_rate for event, _ in flatten(plan.events))
    return max(rates, default=0.0) * facts.slots * facts.rows_per_unit


def compute_chunk_units(rows_per_unit: int, row_width: int = 1) -> int:
    """Compute the number of units in a chunk; it is a multiple of any block's."""
    rows = max(MOST_ROWS, min(CHUNK_ROWS, _CHUNK_VALUES // row_width))
    return compute_power_of_two(rows // rows_per_unit)


def cut_units(units: int, rows_per_unit: int, parts: int) -> list[int]:
    """Cut ``units`` units into at most ``parts`` nearly equal parts.

    Returns:
        The start of each part, and the end of the last one.
    """
    chunk = compute_chunk_units(rows_per_unit)
    chunks = -(-units // chunk)
    count = max(1, min(parts, chunks))
    return [min(units, chunk * (chunks * part // count)) for part in range(count)] + [units]


def compute_partial_sum(query: Query, model: RowModel, design: RowEncoder, source: RowSource, slots: Slots) -> Integers:
    """Compute the exact sum of ``query`` over the units at ``slots``, in bounded memory.

    While one chunk is folded and summed, the next one is read, decrypted and encoded. Both take about the same time,
    and memory holds two chunks.

    Row zone (see :class:`app.inference.core.model.Model`): the computation raises nothing for any values of rows. Only
    ``source`` may raise, for reasons that do not depend on the values. ``source`` is called by one thread at a time,
    possibly another than the caller's, and not after this function has returned.
    """
    each, chunk = source.rows_per_slot, compute_chunk_units(source.rows_per_slot, model.row_width)
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


def gather(model: RowModel, design: RowEncoder, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """Read and fold all units at ``slots``, chunk by chunk, into one array; returns as :func:`fold`."""
    each, chunk = source.rows_per_slot, compute_chunk_units(source.rows_per_slot, model.row_width)
    rows = np.empty((len(slots) * each, model.row_width), dtype=np.float32)
    present = np.empty(len(slots) * each, dtype=bool)
    _raise_trim_threshold()
    for start in range(0, len(slots), chunk):
        place = slice(start * each, (start + chunk) * each)
        rows[place], present[place] = fold(model, design, source, slots[start : start + chunk])
    return rows, present


def fold(model: RowModel, design: RowEncoder, source: RowSource, slots: Slots) -> tuple[Array32, NDArray[np.bool_]]:
    """Read and fold the rows of the units at ``slots``. Row zone.

    Returns:
        Folded rows ``(n * rows_per_slot, row_width)``, and their presence.
    """
    x, y, present = _encode(design, source, slots)
    return _fold_row_major(model, x, y), present


def _encode(design: RowEncoder, source: RowSource, slots: Slots) -> tuple[Array32, Array64, NDArray[np.bool_]]:
    """Read design rows, targets and presence of the units at ``slots``."""
    indices = np.arange(slots.start, slots.stop) if isinstance(slots, range) else slots.astype(np.int64, copy=False)
    return design.encode(source.gather(indices))


def _raise_trim_threshold() -> None:
    """Make the allocator reuse the memory of one chunk for the next.

    The GNU allocator returns free memory to the system above a threshold. The threshold is twice the size of the
    largest array that the allocator has mapped and freed. If every chunk's memory is returned, the system must clear it
    for the next chunk, which took longer than the work on the chunk. This function allocates and frees one large array,
    and so raises the threshold. The array is smaller than 32 MiB, because the allocator does not adapt to larger ones.
    """
    np.empty(_LARGEST_LEARNT, dtype=np.uint8)


def _fold_row_major(model: RowModel, x: Array32, y: Array64) -> Array32:
    """Fold rows into a row-major array, in pieces that fit the cache."""
    folded = np.empty((len(x), model.row_width), dtype=np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), _COPIED_ROWS):
            part = slice(start, start + _COPIED_ROWS)
            rows = model.fold(x[part], y[part].astype(np.float32))
            for first in range(0, model.row_width, _COPIED_COLUMNS):
                folded[part, first : first + _COPIED_COLUMNS] = rows[:, first : first + _COPIED_COLUMNS]
    return folded
