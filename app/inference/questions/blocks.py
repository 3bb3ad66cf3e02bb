"""Sums over units in blocks that fit the cache: what the kinds of questions share. Total in the rows (W14)."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from app.inference.mechanisms import BadQuestion, clip_to_grid, exact_sum
from app.inference.protocol import Array32, Array64, Integers

BLOCK = 512
"""Rows that are worked on together."""


def check_array(array: Array64, shape: tuple[int, ...], name: str) -> None:
    """Raise :class:`BadQuestion` unless ``array`` is finite and of ``shape``."""
    if array.shape != shape or not np.all(np.isfinite(array)):
        raise BadQuestion(f"{name}: not finite, or not of the planned shape")


def unit_blocks(
    rows: Array32, present: NDArray[np.bool_], rows_per_unit: int
) -> Iterator[tuple[Array32, NDArray[np.bool_]]]:
    """Consecutive rows of at most :data:`BLOCK`, whole units always, and their presence."""
    size = max(1, BLOCK // rows_per_unit) * rows_per_unit
    for start in range(0, len(rows), size):
        yield rows[start : start + size], present[start : start + size]


def over_units(values: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> tuple[Array32, NDArray[np.bool_]]:
    """Sums ``(n, S)`` over the present rows of each unit, and which units have any; may work in ``values``."""
    if rows_per_unit == 1:
        return values, present
    values *= present[:, None]
    sums: Array32 = values.reshape(-1, rows_per_unit, values.shape[1]).sum(axis=1)
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
    integers = np.empty((BLOCK, length))
    with np.errstate(all="ignore"):
        for block, there in unit_blocks(rows, present, rows_per_unit):
            sums, units = over_units(contributions(block), there, rows_per_unit)
            total += exact_sum(clip_to_grid(sums, units, clip, out=integers[: len(sums)]))
    return total
