"""Thinning of a chart by columns of pixels.

A column is one unit wide, or a stated number of units. Coordinates are in the units of the picture: y grows downwards.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

MOST_INTERVALS: Final = 3
"""Intervals of merged boxes in one column. It bounds the size of the picture."""
T = TypeVar("T")


class Point(NamedTuple):
    """A corner of a line of steps."""

    x: float
    y: float


class Box(NamedTuple):
    """A rectangle with sides along the axes."""

    left: float
    top: float
    right: float
    bottom: float


def group_by_column(items: Sequence[T], place: Callable[[T], float], width: int = 1) -> Iterator[list[T]]:
    """Group neighbours in the same column.

    Args:
        items: sorted by ``place``.
        place: the x of an item.
        width: units of a column.
    """
    for _, group in groupby(items, key=lambda item: place(item) // width):
        yield list(group)


def group_near(items: Sequence[T], place: Callable[[T], float], width: float) -> Iterator[list[T]]:
    """Group neighbours nearer than ``width`` to the first of their group.

    Args:
        items: sorted by ``place``.
        place: the x of an item.
        width: the least distance between first items.
    """
    group = list[T]()
    for item in items:
        if group and place(item) - place(group[0]) >= width:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def thin_line(points: Sequence[Point]) -> list[Point]:
    """Keep the first, last, lowest and highest point of each column, in their order.

    Args:
        points: sorted by x.
    """
    kept = list[Point]()
    for column in group_by_column(points, lambda point: point.x):
        heights = [point.y for point in column]
        places = {0, len(column) - 1, heights.index(min(heights)), heights.index(max(heights))}
        kept += [column[place] for place in sorted(places)]
    return kept


def merge_boxes(boxes: Sequence[Box], width: int, height: int) -> list[Box]:
    """Merge boxes on the grid of whole units. The result covers each box, and has few intervals in a column.

    Args:
        boxes: between 0 and ``width``, and between 0 and ``height``.
        width: columns of the grid.
        height: rows of the grid.

    Returns:
        At most :data:`MOST_INTERVALS` boxes in each column. Equal intervals of neighbouring columns are one box.
    """
    merged, opened = list[Box](), dict[tuple[int, int], int]()
    for x, column in enumerate(_cover(boxes, width, height)):
        intervals = _list_intervals(column)
        for ended in opened.keys() - intervals:
            merged.append(Box(opened.pop(ended), ended[0], x, ended[1]))
        for interval in intervals:
            opened.setdefault(interval, x)
    return merged


def _cover(boxes: Sequence[Box], width: int, height: int) -> NDArray[np.bool_]:
    """Mark covered cells, by sums over differences at corners. The last column and row are empty."""
    corners = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    left = np.clip(np.floor(corners[:, 0]), 0, width - 1).astype(np.intp)
    top = np.clip(np.floor(corners[:, 1]), 0, height - 1).astype(np.intp)
    right = np.clip(np.ceil(corners[:, 2]), left + 1, width).astype(np.intp)
    bottom = np.clip(np.ceil(corners[:, 3]), top + 1, height).astype(np.intp)
    changes = np.zeros((width + 1, height + 1), dtype=np.int64)
    for x, y, sign in ((left, top, 1), (right, top, -1), (left, bottom, -1), (right, bottom, 1)):
        np.add.at(changes, (x, y), sign)
    covered: NDArray[np.bool_] = changes.cumsum(axis=0).cumsum(axis=1) > 0
    return covered


def _list_intervals(column: NDArray[np.bool_]) -> set[tuple[int, int]]:
    """List the covered intervals of a column; the smallest gaps are closed if there are too many."""
    edges = np.flatnonzero(np.diff(column, prepend=False, append=False)).tolist()
    while len(edges) > 2 * MOST_INTERVALS:
        smallest = min(range(1, len(edges) - 1, 2), key=lambda place: edges[place + 1] - edges[place])
        del edges[smallest : smallest + 2]
    return set(zip(edges[::2], edges[1::2], strict=True))
