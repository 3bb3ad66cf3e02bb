"""Where a query's rows are while it is answered: held in memory, or read anew for each query.

Rows are held where their expected number fits :data:`RESIDENT_BYTES`, a bound on what is decided by slots, rates and
widths alone; beyond it they stream through in consecutive chunks, so that memory is bounded whatever the table is. Both
ways cut a query's units at the same places, and so give the same integers bit for bit.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Model
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.partition import Slots, Summation, chunk_units, gather, partial_sum
from app.inference.private_zone.sampling import Subsamples, expected_coverage, poisson_pieces

Rates = Sequence[tuple[float, int]]
"""Sampling rates and how many queries in a row each is for, in order."""

RESIDENT_BYTES = 512 << 20
_STREAMED_UNITS = 1 << 22
"""Units of a subsample that are listed together while they are streamed: a whole number of chunks."""


class Held:
    """All rows that any of the subsamples needs, gathered in one pass."""

    def __init__(
        self, model: Model, design: Design, source: RowSource, sampling: np.random.Generator, rates: Rates
    ) -> None:
        """Draw all subsamples, then gather."""
        self._model, self._each = model, source.rows_per_slot
        self._chunk = chunk_units(self._each, model.row_width)
        self._samples = Subsamples(sampling, source.slots, rates)
        self._rows, self._present = gather(model, design, source, self._samples.union)

    def sum(self, query: Query) -> Integers:
        """The exact sum over the next subsample. Total in the rows."""
        positions = self._samples.next()
        if positions is None:
            return query.sum(self._model, self._rows, self._present, self._each)
        starts = range(0, max(len(positions), 1), self._chunk)
        parts = [self._part(query, positions[start : start + self._chunk]) for start in starts]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))

    def _part(self, query: Query, positions: NDArray[np.integer]) -> Integers:
        rows = self._rows.reshape(-1, self._each * self._rows.shape[1]).take(positions, axis=0)
        present = self._present.reshape(-1, self._each).take(positions, axis=0)
        return query.sum(self._model, rows.reshape(-1, self._rows.shape[1]), present.ravel(), self._each)


class Streamed:
    """Nothing but the way to the rows: the subsamples of :class:`Held`, drawn when they are asked for."""

    def __init__(self, summation: Summation, slots: int, sampling: np.random.Generator, rates: Rates) -> None:
        self._summation, self._slots, self._sampling = summation, slots, sampling
        self._rates = iter([rate for rate, count in rates for _ in range(count)])

    def sum(self, query: Query) -> Integers:
        """The exact sum over the next subsample, the same as :meth:`Held.sum`. Total in the rows."""
        rate = next(self._rates)
        if rate >= 1:
            return self._summation(query, range(self._slots))
        pieces = poisson_pieces(self._sampling, self._slots, rate)
        parts = [self._summation(query, units) for units in _regroup(pieces, _STREAMED_UNITS)]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def rows_for(
    model: Model,
    design: Design,
    source: RowSource,
    sampling: np.random.Generator,
    rates: Rates,
    *,
    summation: Summation | None,
) -> Held | Streamed:
    """Held rows where the expected union of all subsamples fits, streamed ones beyond, or summed elsewhere.

    ``sampling`` is used by nobody else.
    """
    expected = expected_coverage(rates) * source.slots * source.rows_per_slot * (4 * model.row_width + 1)
    if summation is None and expected <= RESIDENT_BYTES:
        return Held(model, design, source, sampling, rates)

    def here(query: Query, units: Slots) -> Integers:
        return partial_sum(query, model, design, source, units)

    return Streamed(summation or here, source.slots, sampling, rates)


def _regroup(pieces: Iterable[NDArray[np.int64]], size: int) -> Iterator[NDArray[np.int64]]:
    """The same units in groups of ``size``, but for the last one, which may be empty."""
    held = np.arange(0)
    for piece in pieces:
        held = np.concatenate([held, piece])
        whole = len(held) - len(held) % size
        yield from (held[start : start + size] for start in range(0, whole, size))
        held = held[whole:]
    yield held
