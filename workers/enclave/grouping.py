"""Groups rows by unit, at most ``rows_per_slot`` rows of each, in bounded memory.

Rows are distributed to buckets by keyed pseudonyms of their units, so that no choice of units can fill one bucket. Then
each bucket is sorted. The rows that a unit keeps depend only on its rows and their random priorities: rows before null
rows, then by priority. Units are in the order of their pseudonyms. The name of a unit reaches neither the scratch file
nor the table. In a series, the sealed scratch file holds its pseudonym in the series as well.
"""

import math
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.row_source import PRESENT
from workers.enclave.cells import STORED_TYPES
from workers.enclave.faults import FileFault
from workers.enclave.pseudonyms import KEY_BYTES, compute_pseudonyms
from workers.enclave.registers import WIDTH, Admission
from workers.enclave.scratch import Scratch
from workers.enclave.table_format import Layout

BUCKET_BYTES = 32 << 20
PIECE_BYTES = 8 << 20
MOST_BUCKETS = 4096
_SHIFT = 32  # the bucket follows from other bits than the order within it
_UNIT, _PRIORITY, _NAME = "_unit", "_priority", "_name"  # no declared column has such a name

Records = NDArray[np.void]
DrawPriorities = Callable[[int], NDArray[np.uint64]]


def draw_priorities(rows: int) -> NDArray[np.uint64]:
    """Draw 64 random bits from the operating system for each row."""
    return np.frombuffer(secrets.token_bytes(8 * rows), dtype=np.uint64)


class Grouping:
    """Takes rows in any order and returns them unit by unit.

    Args:
        layout: of the table; it must have a unit's column.
        scratch: keeps the rows that do not fit into memory.
        key: of the pseudonyms; by default a new one. A key is used for one upload only.
        draw: draws the priorities, which decide the rows that a unit keeps.
        admission: decides which units keep their rows; None: all of them.
    """

    def __init__(
        self,
        layout: Layout,
        scratch: Scratch,
        *,
        key: bytes | None = None,
        draw: DrawPriorities = draw_priorities,
        admission: Admission | None = None,
    ) -> None:
        stored = [(column.name, STORED_TYPES[column.type]) for column in layout.columns]
        named = [] if admission is None else [(_NAME, f"S{WIDTH}")]
        self._records = np.dtype([(_UNIT, np.uint64), (_PRIORITY, np.uint64), *named, *stored, (PRESENT, np.uint8)])
        self._admission = admission
        self._layout, self._scratch, self._draw = layout, scratch, draw
        self._key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._buckets = _count_buckets(layout.rows * self._records.itemsize)
        self._waiting: dict[int, list[Records]] = {}
        self._waiting_bytes = 0

    def add(self, units: NDArray[np.float64], values: Mapping[str, NDArray[Any]]) -> None:
        """Add rows.

        Args:
            units: the unit of each row, ``(n,)``.
            values: name -> ``(n,)`` stored values, with ``present``.
        """
        step = max(1, PIECE_BYTES // self._records.itemsize)
        for start in range(0, len(units), step):
            piece = slice(start, start + step)
            self._distribute(units[piece], {name: array[piece] for name, array in values.items()})

    def rows(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield batches of whole units, ``rows_per_slot`` rows of each, padded with null rows.

        Raises:
            FileFault: too_many_units.
            ObjectMissing, VaultError: as :meth:`workers.enclave.registers.Admission.close`.
        """
        if self._admission is not None:
            self._admission.close()
        units = 0
        for bucket in range(self._buckets):
            records = self._gather(bucket)
            starts = _find_starts(records[_UNIT])
            units += len(starts)
            if units > self._layout.slots:
                raise FileFault("too_many_units")
            blocks = np.zeros((len(starts), self._layout.rows_per_slot), dtype=self._records)
            blocks[_number_runs(starts, len(records)), _rank_rows(starts, len(records))] = records
            stays = self._admit(records[starts])
            names = (*(column.name for column in self._layout.columns), PRESENT)
            yield {name: np.where(stays, blocks[name], blocks.dtype[name].type(0)).reshape(-1) for name in names}

    def _admit(self, first: Records) -> NDArray[np.bool_]:
        """Return whether each unit keeps its rows ``(n, 1)``, given one of its records."""
        if self._admission is None:
            return np.ones((len(first), 1), dtype=bool)
        return self._admission.admit(first[_NAME])[:, None]

    def _distribute(self, units: NDArray[np.float64], values: Mapping[str, NDArray[Any]]) -> None:
        records = np.empty(len(units), dtype=self._records)
        records[_UNIT] = compute_pseudonyms(self._key, units)
        records[_PRIORITY] = self._draw(len(units))
        if self._admission is not None:
            records[_NAME] = self._admission.name(units)
            self._admission.note(records[_NAME])
        for name, array in values.items():
            records[name] = array
        buckets = (records[_UNIT] >> np.uint64(_SHIFT)) % np.uint64(self._buckets)
        order = np.argsort(buckets, kind="stable")
        records, buckets = records[order], buckets[order]
        starts = _find_starts(buckets)
        for start, end in zip(starts, np.append(starts[1:], len(buckets)), strict=True):
            self._waiting.setdefault(int(buckets[start]), []).append(records[start:end])
        self._waiting_bytes += records.nbytes
        if self._waiting_bytes >= BUCKET_BYTES:
            self._spill()

    def _spill(self) -> None:
        for bucket, pieces in self._waiting.items():
            self._scratch.put(bucket, np.concatenate(pieces).tobytes())
        self._waiting, self._waiting_bytes = {}, 0

    def _gather(self, bucket: int) -> Records:
        """Read the rows that the units of a bucket keep, sorted.

        The memory depends on the rows kept, not on all rows of the bucket.
        """
        reduced, pieces, size = np.empty(0, dtype=self._records), [], 0
        for piece in self._pieces(bucket):
            pieces.append(piece)
            size += piece.nbytes
            if size >= BUCKET_BYTES:
                reduced, pieces, size = self._reduce([reduced, *pieces]), [], 0
        return self._reduce([reduced, *pieces])

    def _pieces(self, bucket: int) -> Iterator[Records]:
        for data in self._scratch.pieces(bucket):
            yield np.frombuffer(data, dtype=self._records)
        yield from self._waiting.pop(bucket, [])

    def _reduce(self, pieces: list[Records]) -> Records:
        records = np.concatenate(pieces)
        records = records[np.lexsort((records[_PRIORITY], records[PRESENT] == 0, records[_UNIT]))]
        starts = _find_starts(records[_UNIT])
        if len(starts) > self._most_units():
            raise FileFault("too_many_units")
        return records[_rank_rows(starts, len(records)) < self._layout.rows_per_slot]

    def _most_units(self) -> int:
        """Compute a bound on the units of a bucket.

        In a table with at most as many units as slots, less than one bucket in 1e30 exceeds it. This follows from
        Bernstein's inequality for pseudonyms that fall into buckets independently. A single bucket holds all units.
        """
        expected = self._layout.slots / self._buckets
        bound = math.ceil(expected + 12 * math.sqrt(expected) + 64)
        return self._layout.slots if self._buckets == 1 else min(self._layout.slots, bound)


def _count_buckets(table_bytes: int) -> int:
    """Compute the number of buckets, from declared facts alone: each keeps about ``BUCKET_BYTES``."""
    return min(MOST_BUCKETS, -(-table_bytes // BUCKET_BYTES))


def _find_starts(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Find the place where each run of equal words begins."""
    begins = np.ones(len(ordered), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(begins)


def _number_runs(starts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Number the runs, and repeat the number for each of ``rows`` rows."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def _rank_rows(starts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Compute the place of each of ``rows`` rows within its run."""
    return np.arange(rows) - starts[_number_runs(starts, rows)]
