"""Public tables as design rows and targets, read in chunks of bounded size.

Only rows that are present, with all their values, are counted and read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.grouping import Grouping
from app.inference.core.model import Array32, Array64
from app.inference.core.row_source import RowSource

Indices = NDArray[np.int64]

CHUNK = 65_536
"""Rows gathered at once."""
RESIDENT_VALUES = 2**26
"""Values of design rows that may stay in memory at once (256 MiB in single precision)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Distinct rows ``indices`` ``(k,)`` and their non-negative ``weights`` ``(k,)``.

    ``k`` is at most the requested size.
    """

    indices: Indices
    weights: Array64


class PublicTable:
    """The rows of a public table.

    ``spread`` (p,) and ``target_spread`` are the standard deviations of the design columns and of the target.
    """

    def __init__(self, source: RowSource, design: Design) -> None:
        """Read the table once, for the places of its rows and the standard deviations."""
        self._source, self.design = source, design
        present_places, sums, squares = [], np.zeros(design.width + 1), np.zeros(design.width + 1)
        for places in _runs(np.arange(source.slots * source.rows_per_slot)):
            x, y, present = self._encode(places)
            present_places.append(places[present])
            values = np.column_stack((x, y)).astype(np.float64)
            sums += values.sum(axis=0)
            squares += np.square(values).sum(axis=0)
        self._places = np.concatenate(present_places)
        total = max(self.count, 1)
        spreads = np.sqrt(np.maximum(squares / total - (sums / total) ** 2, 0))
        self.spread: Array64 = spreads[:-1]
        self.target_spread = float(spreads[-1])

    @property
    def count(self) -> int:
        """The number N of rows."""
        return len(self._places)

    def read(self, indices: Indices) -> tuple[Array32, Array64]:
        """Read design rows ``(n, p)`` and targets ``(n,)`` at ``indices`` below :attr:`count`.

        Indices may repeat and have any order.
        """
        distinct, order = np.unique(indices, return_inverse=True)
        parts = [self._encode(self._places[run])[:2] for run in _runs(distinct)]
        if not parts:
            return np.zeros((0, self.design.width), dtype=np.float32), np.zeros(0)
        x, y = (np.concatenate(each) for each in zip(*parts, strict=True))
        return x[order], y[order]

    def chunks(self) -> Iterator[tuple[Array32, Array64]]:
        """Yield all design rows and targets in order, chunk by chunk."""
        for run in _runs(np.arange(self.count)):
            yield self._encode(self._places[run])[:2]

    def find_groups(self, grouping: Grouping) -> NDArray[np.int64]:
        """Find the group ``(N,)`` of each row; -1 where a value is not declared."""
        return np.concatenate([np.zeros(0, dtype=np.int64), *map(partial(self._group, grouping), _runs(self._places))])

    def _group(self, grouping: Grouping, places: Indices) -> Indices:
        each = self._source.rows_per_slot
        units = np.unique(places // each)
        gathered = self._source.gather(units)
        present = np.ones(len(units) * each, dtype=bool)
        codes: Indices = grouping.encode(gathered, present).astype(np.int64)
        codes[~present] = -1
        return np.asarray(codes[np.searchsorted(units, places // each) * each + places % each])

    def _encode(self, places: Indices) -> tuple[Array32, Array64, NDArray[np.bool_]]:
        """Encode the rows at ``places``, which are sorted; whole units are gathered.

        The result is in C order.
        """
        each = self._source.rows_per_slot
        units = np.unique(places // each)
        x, y, present = self.design.encode(self._source.gather(units))
        if each == 1:
            return np.ascontiguousarray(x), y, present
        rows = np.searchsorted(units, places // each) * each + places % each
        return x[rows], y[rows], present[rows]


class Minibatches:
    """An endless sequence of independent uniform subsamples without replacement.

    The table is read once if it fits into memory. Otherwise subsamples are drawn for as many steps ahead as fit, and
    their union is gathered in one pass.
    """

    def __init__(self, table: PublicTable, size: int, rng: np.random.Generator) -> None:
        self._table, self._size, self._rng = table, min(size, table.count), rng
        self._union: Indices | None = None
        self._ahead: Iterator[Indices] = iter(())
        self._x = np.zeros((0, 0), dtype=np.float32)
        self._y = np.zeros(0)

    def next(self) -> tuple[Indices, Array64, Array64]:
        """Return the next subsample: sorted indices ``(B,)``, their design rows and targets."""
        indices = next(self._ahead, None)
        if indices is None:
            self._fetch()
            indices = next(self._ahead)
        positions = indices if self._union is None else np.searchsorted(self._union, indices)
        return indices, self._x[positions].astype(np.float64), self._y[positions]

    def _fetch(self) -> None:
        whole = self._table.count * self._table.design.width <= RESIDENT_VALUES
        if whole and len(self._x):
            self._ahead = iter([self._draw()])
            return
        steps = max(1, RESIDENT_VALUES // max(self._size * self._table.design.width, 1))
        drawn = [self._draw() for _ in range(1 if whole else steps)]
        self._union = None if whole else np.unique(np.concatenate(drawn))
        wanted = np.arange(self._table.count) if self._union is None else self._union
        self._x, self._y = self._table.read(wanted)
        self._ahead = iter(drawn)

    def _draw(self) -> Indices:
        chosen = self._rng.choice(self._table.count, size=self._size, replace=False, shuffle=False)
        chosen.sort()
        return chosen


def _runs(indices: Indices) -> Iterator[Indices]:
    return (indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK))
