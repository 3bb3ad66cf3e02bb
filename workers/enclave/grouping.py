"""Rows gathered by the unit that they name, at most ``rows_per_slot`` of each, in bounded memory.

Rows are dealt to piles by keyed pseudonyms of their units, so that no choice of units can fill one pile; then each
pile is sorted by itself. Which rows of a unit are kept follows from those rows and from coins of their own alone:
rows that are there before null ones, then by lot. Units lie in the order of their pseudonyms. What a unit is called
reaches neither the scratch file nor the table.
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
from workers.enclave.pseudonyms import KEY_BYTES, pseudonyms
from workers.enclave.scratch import Scratch
from workers.enclave.table_format import Layout

PILE_BYTES = 32 << 20
PIECE_BYTES = 8 << 20
MOST_PILES = 4096
_SHIFT = 32  # piles go by other bits than the order within them
_UNIT, _LOT = "_unit", "_lot"  # no declared column has such a name

Records = NDArray[np.void]
Lots = Callable[[int], NDArray[np.uint64]]


def draw_lots(rows: int) -> NDArray[np.uint64]:
    """64 bits of the operating system's for each row."""
    return np.frombuffer(secrets.token_bytes(8 * rows), dtype=np.uint64)


class Grouping:
    """Takes rows in any order and gives them back unit by unit.

    Args:
        layout: of the table; it names a unit.
        scratch: where rows wait that are too many for memory.
        key: of the pseudonyms; fresh, and used for one upload only.
        lots: which rows a unit keeps.
    """

    def __init__(self, layout: Layout, scratch: Scratch, *, key: bytes | None = None, lots: Lots = draw_lots) -> None:
        stored = [(column.name, STORED_TYPES[column.type]) for column in layout.columns]
        self._records = np.dtype([(_UNIT, np.uint64), (_LOT, np.uint64), *stored, (PRESENT, np.uint8)])
        self._layout, self._scratch, self._lots = layout, scratch, lots
        self._key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._piles = _piles(layout.rows * self._records.itemsize)
        self._waiting: dict[int, list[Records]] = {}
        self._waiting_bytes = 0

    def add(self, units: NDArray[np.float64], values: Mapping[str, NDArray[Any]]) -> None:
        """The next rows: the unit of each, ``(n,)``, and name -> ``(n,)`` stored values, ``present`` included."""
        step = max(1, PIECE_BYTES // self._records.itemsize)
        for start in range(0, len(units), step):
            piece = slice(start, start + step)
            self._deal(units[piece], {name: array[piece] for name, array in values.items()})

    def rows(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Batches of whole units: ``rows_per_slot`` rows of each, the last ones null where it has fewer.

        Raises:
            FileFault: too_many_units.
        """
        found = 0
        for pile in range(self._piles):
            kept = self._gather(pile)
            starts = _starts(kept[_UNIT])
            found += len(starts)
            if found > self._layout.slots:
                raise FileFault("too_many_units")
            laid = np.zeros((len(starts), self._layout.rows_per_slot), dtype=self._records)
            laid[_units(starts, len(kept)), _ranks(starts, len(kept))] = kept
            names = (*(column.name for column in self._layout.columns), PRESENT)
            yield {name: laid[name].reshape(-1) for name in names}

    def _deal(self, units: NDArray[np.float64], values: Mapping[str, NDArray[Any]]) -> None:
        records = np.empty(len(units), dtype=self._records)
        records[_UNIT] = pseudonyms(self._key, units)
        records[_LOT] = self._lots(len(units))
        for name, array in values.items():
            records[name] = array
        piles = (records[_UNIT] >> np.uint64(_SHIFT)) % np.uint64(self._piles)
        order = np.argsort(piles, kind="stable")
        records, piles = records[order], piles[order]
        starts = _starts(piles)
        for start, end in zip(starts, np.append(starts[1:], len(piles)), strict=True):
            self._waiting.setdefault(int(piles[start]), []).append(records[start:end])
        self._waiting_bytes += records.nbytes
        if self._waiting_bytes >= PILE_BYTES:
            self._put_down()

    def _put_down(self) -> None:
        for pile, pieces in self._waiting.items():
            self._scratch.put(pile, np.concatenate(pieces).tobytes())
        self._waiting, self._waiting_bytes = {}, 0

    def _gather(self, pile: int) -> Records:
        """What the units of a pile keep, sorted; memory follows what is kept, however much there was."""
        kept, fresh, size = np.empty(0, dtype=self._records), [], 0
        for piece in self._pieces(pile):
            fresh.append(piece)
            size += piece.nbytes
            if size >= PILE_BYTES:
                kept, fresh, size = self._reduce([kept, *fresh]), [], 0
        return self._reduce([kept, *fresh])

    def _pieces(self, pile: int) -> Iterator[Records]:
        for data in self._scratch.pieces(pile):
            yield np.frombuffer(data, dtype=self._records)
        yield from self._waiting.pop(pile, [])

    def _reduce(self, pieces: list[Records]) -> Records:
        records = np.concatenate(pieces)
        records = records[np.lexsort((records[_LOT], records[PRESENT] == 0, records[_UNIT]))]
        starts = _starts(records[_UNIT])
        if len(starts) > self._most_units():
            raise FileFault("too_many_units")
        return records[_ranks(starts, len(records)) < self._layout.rows_per_slot]

    def _most_units(self) -> int:
        """Units that a pile holds at most, unless there are more than slots: exceeded by less than one pile in 1e30.

        (Bernstein's inequality for pseudonyms that fall into piles independently; one pile holds all, for certain.)
        """
        expected = self._layout.slots / self._piles
        chance = math.ceil(expected + 12 * math.sqrt(expected) + 64)
        return self._layout.slots if self._piles == 1 else min(self._layout.slots, chance)


def _piles(table_bytes: int) -> int:
    """By declared facts alone: so many that what a pile keeps is about ``PILE_BYTES``."""
    return min(MOST_PILES, -(-table_bytes // PILE_BYTES))


def _starts(ordered: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where each run of equal words begins."""
    begins = np.ones(len(ordered), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(begins)


def _units(starts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The run that each of ``rows`` rows belongs to."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=rows))


def _ranks(starts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The place of each of ``rows`` rows within its run."""
    return np.arange(rows) - starts[_units(starts, rows)]
