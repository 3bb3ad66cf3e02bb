"""Sums over units in blocks that fit the cache, for all kinds of queries. Total in the rows (W14)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import BadQuery, clip_to_grid, compute_exact_sum

MOST_ROWS = 2048
"""Rows of a block at most; more only if a unit has more."""

_TILE = 64
"""The number of rows in a product is a multiple of this."""

_MOST_VALUES = 1 << 18
"""Values of a block at most, which is one MiB and stays in the cache; more only if a tile has more."""


def compute_power_of_two(n: int) -> int:
    """Compute the largest power of two up to ``n``; at least one."""
    return 1 << (max(n, 1).bit_length() - 1)


def compute_block_units(length: int, rows_per_unit: int) -> int:
    """Compute the number of units in a block, a power of two.

    A unit has ``rows_per_unit`` rows of ``length`` values. These are public facts, so all blocks of a query except the
    last have the same shape in every process.
    """
    rows = max(_TILE, min(MOST_ROWS, _MOST_VALUES // length))
    return compute_power_of_two(rows // rows_per_unit)


def compute_block_rows(units: int, rows_per_unit: int) -> int:
    """Compute the number of rows in a block of ``units`` units.

    Null rows extend it to a power of two of units, and to whole tiles.
    """
    filled = 1 << (units - 1).bit_length()
    return -(-filled * rows_per_unit // _TILE) * _TILE


def check_array(array: Array64, shape: tuple[int, ...], name: str) -> None:
    """Raise :class:`BadQuery` unless ``array`` is finite and of ``shape``."""
    if array.shape != shape or not np.isfinite(array).all():
        raise BadQuery(f"{name}: not finite, or not of the planned shape")


def iterate_unit_blocks(
    rows: Array32, present: NDArray[np.bool_], rows_per_unit: int, length: int
) -> Iterator[tuple[Array32, NDArray[np.bool_]]]:
    """Yield blocks of consecutive rows and the presence of their units.

    A block has at most :func:`compute_block_units` units. It is extended by absent null rows to
    :func:`compute_block_rows` rows, which are whole tiles. The contribution of a row then depends on its values and its
    place alone (W5); a neighbouring table does not change its place. Single precision may round a row differently in an
    incomplete tile. With whole tiles the place has no effect either if the matrix product treats all places equally
    (OpenBLAS with AVX-512, not with AVX2).
    """
    size = compute_block_units(length, rows_per_unit) * rows_per_unit
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        whole = compute_block_rows(-(-len(block) // rows_per_unit), rows_per_unit)
        there = present[start : start + size]
        if len(block) < whole:
            block, there = _pad(block, whole), _pad(there, whole)
        yield block, there[: whole - whole % rows_per_unit]


def _pad(part: NDArray[Any], length: int) -> NDArray[Any]:
    """Append zeros to ``part`` up to ``length``."""
    padded = np.zeros((length, *part.shape[1:]), dtype=part.dtype)
    padded[: len(part)] = part
    return padded


def sum_over_units(
    values: Array32, present: NDArray[np.bool_], rows_per_unit: int
) -> tuple[Array32, NDArray[np.bool_]]:
    """Sum the present rows of each unit; may overwrite ``values``.

    Returns:
        The sums ``(n, S)``, and ``(n,)`` whether each unit has a present row.
    """
    if rows_per_unit == 1:
        return values, present
    values *= present[:, None]
    sums: Array32 = values.reshape(len(values) // rows_per_unit, rows_per_unit, values.shape[1]).sum(axis=1)
    units: NDArray[np.bool_] = np.any(present.reshape(-1, rows_per_unit), axis=1)
    return sums, units


def compute_clipped_sum(
    contributions: Callable[[Array32], Array32],
    rows: Array32,
    present: NDArray[np.bool_],
    rows_per_unit: int,
    *,
    length: int,
    clip: float,
) -> Integers:
    """Compute the exact sum ``(length,)`` of units' contributions, clipped and rounded to the grid.

    ``contributions`` maps rows ``(m, row_width)`` to an array ``(m, length)`` that may be overwritten. Each unit's sum
    over its rows is clipped to norm ``clip``. A unit whose sum is not finite contributes zero.
    """
    total = np.zeros(length, dtype=np.int64)
    with np.errstate(all="ignore"):
        for block, there in iterate_unit_blocks(rows, present, rows_per_unit, length):
            sums, units = sum_over_units(contributions(block)[: len(there)], there, rows_per_unit)
            total += compute_exact_sum(clip_to_grid(sums, units, clip))
    return total
