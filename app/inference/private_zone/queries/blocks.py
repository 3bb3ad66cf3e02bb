"""Sums over units in blocks that fit the cache: what the kinds of queries share. Total in the rows (W14)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import BadQuery, clip_to_grid, exact_sum

MOST_ROWS = 2048
"""Rows that are worked on together at most, unless a unit has more."""

_TILE = 64
"""Rows that products are computed in whole multiples of."""

_MOST_VALUES = 1 << 18
"""Values that are worked on together at most, unless a tile has more: one MiB stays in the cache."""


def power_of_two(n: int) -> int:
    """The largest power of two up to ``n``, at least one."""
    return 1 << (max(n, 1).bit_length() - 1)


def block_units(length: int, rows_per_unit: int) -> int:
    """Units of ``rows_per_unit`` rows, of ``length`` values each, that are worked on together: a power of two.

    Public facts decide it: all blocks of a query but the last have this shape, wherever they are worked on.
    """
    rows = max(_TILE, min(MOST_ROWS, _MOST_VALUES // length))
    return power_of_two(rows // rows_per_unit)


def block_rows(units: int, rows_per_unit: int) -> int:
    """Rows of a block for so many units: null rows fill a power of two of units, and its last tile."""
    filled = 1 << (units - 1).bit_length()
    return -(-filled * rows_per_unit // _TILE) * _TILE


def check_array(array: Array64, shape: tuple[int, ...], name: str) -> None:
    """Raise :class:`BadQuery` unless ``array`` is finite and of ``shape``."""
    if array.shape != shape or not np.isfinite(array).all():
        raise BadQuery(f"{name}: not finite, or not of the planned shape")


def unit_blocks(
    rows: Array32, present: NDArray[np.bool_], rows_per_unit: int, length: int
) -> Iterator[tuple[Array32, NDArray[np.bool_]]]:
    """Consecutive rows, at most :func:`block_units` together, and the presence of whole units of them.

    Blocks have the :func:`block_rows` of their units, absent null rows filling them up: whole tiles. What a
    row contributes depends on its place alone, which a neighbouring table does not change, and on nothing that others
    hold (W5). Single precision may round a row otherwise in the last, incomplete tile; with whole ones its place does
    not matter, either, where matrix products treat all places alike (OpenBLAS does for AVX-512, not for AVX2).
    """
    size = block_units(length, rows_per_unit) * rows_per_unit
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        whole = block_rows(-(-len(block) // rows_per_unit), rows_per_unit)
        there = present[start : start + size]
        if len(block) < whole:
            block, there = _pad(block, whole), _pad(there, whole)
        yield block, there[: whole - whole % rows_per_unit]


def _pad(part: NDArray[Any], length: int) -> NDArray[Any]:
    """``part``, and zeros behind it."""
    found = np.zeros((length, *part.shape[1:]), dtype=part.dtype)
    found[: len(part)] = part
    return found


def over_units(values: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> tuple[Array32, NDArray[np.bool_]]:
    """Sums ``(n, S)`` over the present rows of each unit, and which units have any; may work in ``values``."""
    if rows_per_unit == 1:
        return values, present
    values *= present[:, None]
    sums: Array32 = values.reshape(len(values) // rows_per_unit, rows_per_unit, values.shape[1]).sum(axis=1)
    units: NDArray[np.bool_] = np.any(present.reshape(-1, rows_per_unit), axis=1)
    return sums, units


def clipped_sum(
    contributions: Callable[[Array32], Array32],
    rows: Array32,
    present: NDArray[np.bool_],
    rows_per_unit: int,
    *,
    length: int,
    clip: float,
) -> Integers:
    """The exact sum ``(length,)`` of the units' contributions, each clipped to ``clip`` and rounded to the grid.

    ``contributions`` maps rows ``(m, row_width)`` to an array ``(m, length)`` that may be overwritten. A row that
    makes its unit's sum not finite makes it zero.
    """
    total = np.zeros(length, dtype=np.int64)
    with np.errstate(all="ignore"):
        for block, there in unit_blocks(rows, present, rows_per_unit, length):
            sums, units = over_units(contributions(block)[: len(there)], there, rows_per_unit)
            total += exact_sum(clip_to_grid(sums, units, clip))
    return total
