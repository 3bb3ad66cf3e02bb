"""Gives queries their rows, from memory or by reading them again.

Rows are held in memory if their expected size is at most :data:`RESIDENT_BYTES`. This size depends only on the number
of slots, the sampling rates and the widths of rows. Otherwise rows are read in consecutive chunks, so memory is bounded
for every table. In both cases a query's units are cut at the same places, so the sums are the same, bit by bit.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import RowModel
from app.inference.core.query import Integers, Query
from app.inference.core.row_source import RowSource
from app.inference.core.statistics import RowEncoder
from app.inference.private_zone.partition import Slots, Summation, compute_chunk_units, compute_partial_sum, gather
from app.inference.private_zone.sampling import Subsamples, compute_expected_coverage, draw_poisson_pieces

Rates = Sequence[tuple[float, int]]
"""Sampling rates in the order of the queries, each with the number of consecutive queries that use it."""

RESIDENT_BYTES = 512 << 20
_STREAMED_UNITS = 1 << 22
"""Number of units of a streamed subsample that are in memory at once, as indices. It is a whole number of chunks."""


class HeldRows:
    """The rows of all subsamples, gathered in one pass and held in memory."""

    def __init__(
        self, model: RowModel, design: RowEncoder, source: RowSource, sampling: np.random.Generator, rates: Rates
    ) -> None:
        """Draw all subsamples, then gather their rows."""
        self._model, self._each = model, source.rows_per_slot
        self._chunk = compute_chunk_units(self._each, model.row_width)
        self._samples = Subsamples(sampling, source.slots, rates)
        self._rows, self._present = gather(model, design, source, self._samples.union)

    def sum(self, query: Query) -> Integers:
        """Compute the exact sum over the next subsample. It raises nothing for any values of rows."""
        positions = self._samples.next()
        if positions is None:
            return query.sum(self._model, self._rows, self._present, self._each)
        starts = range(0, max(len(positions), 1), self._chunk)
        parts = [self._sum_part(query, positions[start : start + self._chunk]) for start in starts]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))

    def _sum_part(self, query: Query, positions: NDArray[np.integer]) -> Integers:
        rows = self._rows.reshape(-1, self._each * self._rows.shape[1]).take(positions, axis=0)
        present = self._present.reshape(-1, self._each).take(positions, axis=0)
        return query.sum(self._model, rows.reshape(-1, self._rows.shape[1]), present.ravel(), self._each)


class StreamedRows:
    """Rows that are read for each query. Each subsample is drawn when its query is asked."""

    def __init__(self, summation: Summation, slots: int, sampling: np.random.Generator, rates: Rates) -> None:
        self._summation, self._slots, self._sampling = summation, slots, sampling
        self._rates = iter([rate for rate, count in rates for _ in range(count)])

    def sum(self, query: Query) -> Integers:
        """Compute the exact sum over the next subsample, as :meth:`HeldRows.sum`."""
        rate = next(self._rates)
        if rate >= 1:
            return self._summation(query, range(self._slots))
        pieces = draw_poisson_pieces(self._sampling, self._slots, rate)
        parts = [self._summation(query, units) for units in _regroup(pieces, _STREAMED_UNITS)]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def choose_rows(
    model: RowModel,
    design: RowEncoder,
    source: RowSource,
    sampling: np.random.Generator,
    rates: Rates,
    *,
    summation: Summation | None,
) -> HeldRows | StreamedRows:
    """Make held rows if all subsamples are expected to fit into memory.

    Otherwise make streamed rows. If ``summation`` is given, it computes the sums, and rows are always streamed.
    ``sampling`` must be a generator that no other code uses.
    """
    expected = compute_expected_coverage(rates) * source.slots * source.rows_per_slot * (4 * model.row_width + 1)
    if summation is None and expected <= RESIDENT_BYTES:
        return HeldRows(model, design, source, sampling, rates)

    def sum_here(query: Query, units: Slots) -> Integers:
        return compute_partial_sum(query, model, design, source, units)

    return StreamedRows(summation or sum_here, source.slots, sampling, rates)


def _regroup(pieces: Iterable[NDArray[np.int64]], size: int) -> Iterator[NDArray[np.int64]]:
    """Regroup units into groups of ``size``; the last group is smaller and may be empty."""
    rest = np.arange(0)
    for piece in pieces:
        rest = np.concatenate([rest, piece])
        whole = len(rest) - len(rest) % size
        yield from (rest[start : start + size] for start in range(0, whole, size))
        rest = rest[whole:]
    yield rest
