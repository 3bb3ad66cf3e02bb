"""Poisson subsamples, drawn from public facts alone.

Each slot enters a subsample independently with probability q. Up to a quarter of the slots are drawn by the gaps
between them, which are geometric; of more, ``n ~ Binomial(slots, q)`` is drawn, then ``n`` slots uniformly without
replacement, which takes longer. Where few slots are in or out it is gaps again: NumPy's binomial then cuts its tail ten
standard deviations out, which no share of delta pays for. Subsamples do not depend on data: they may be drawn all at
once, so that their union is gathered in one pass, or each when its query is asked.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer]

_KEPT = 1 << 20
"""Expected indices, of all subsamples together, that are kept instead of drawn again."""
_SPARSE_SHARE = 1 / 8
_FULL_SHARE = 0.9
_FEW = 30.0
"""Expected slots from which NumPy's binomial leaves inversion with its cut tail."""
_BY_GAPS = 1 / 4
"""Up to this rate there are so few gaps that they are drawn faster than slots without replacement."""
_GAPS = 64
_DENSE = 1 / 64
"""From this rate on, a subsample is a large part of the slots, and so these are taken in pieces."""
_PIECE = 1 << 22
_MOST_LISTED = 16
"""Slots for each index that is drawn, up to which a list of all slots is shorter work than sorting."""


def poisson_subsample(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """Sorted, unique slots, each in with probability ``rate``; time and memory of the order of their number."""
    pieces = list(poisson_pieces(rng, slots, rate))
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def poisson_pieces(rng: np.random.Generator, slots: int, rate: float) -> Iterator[NDArray[np.int64]]:
    """The same, in consecutive pieces: a large part of many slots is drawn range by range, which is as independent."""
    size = _PIECE if _DENSE <= rate < 1 else slots
    for start in range(0, slots, size):
        piece = _draw(rng, min(size, slots - start), rate)
        yield piece if start == 0 else piece + start


def _draw(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    if rate >= 1:
        return np.arange(slots)
    if rate <= _BY_GAPS or min(rate, 1 - rate) * slots <= _FEW:
        return _by_gaps(rng, slots, rate)
    count = int(rng.binomial(slots, rate))
    chosen = rng.choice(slots, size=count, replace=False, shuffle=False)
    chosen.sort()
    return chosen


def _by_gaps(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """From geometric gaps between the slots that are in: at least one, also where NumPy's logarithm is exactly zero."""
    runs, last, size = [], -1, int(1.1 * slots * rate) + _GAPS
    while last < slots:
        gaps = np.clip(rng.geometric(rate, size=size), 1, slots + 1)
        runs.append(last + np.cumsum(gaps))
        last = int(runs[-1][-1])
    found = np.concatenate(runs)
    return found[found < slots]


def expected_coverage(rates: Sequence[tuple[float, int]]) -> float:
    """The expected share of slots that are in any of the subsamples: ``rates`` lists (rate, number of subsamples)."""
    missed = sum(count * np.log1p(-rate) if rate < 1 else -np.inf for rate, count in rates)
    return float(-np.expm1(missed))


def _list_union(kept: Sequence[Indices], slots: int) -> tuple[Indices, Iterator[Indices]]:
    """The union of ``kept`` subsamples, and each one's positions in it; sorted where slots are too many to list."""
    drawn = np.concatenate(kept)
    if slots > _MOST_LISTED * len(drawn):
        union, places = np.unique(drawn, return_inverse=True)
        return union, iter(np.split(places, np.cumsum([len(indices) for indices in kept])[:-1]))
    position = np.zeros(slots, dtype=drawn.dtype)
    position[drawn] = 1
    union = np.flatnonzero(position).astype(drawn.dtype)
    position[union] = np.arange(len(union), dtype=drawn.dtype)
    return union, (position[indices] for indices in kept)


class Subsamples:
    """A sequence of subsamples and their union.

    Few are drawn once and kept. Many are drawn twice from the same state of the generator: the first pass, on
    construction, finds the union; the second hands the subsamples out one by one. So memory holds the union and one
    subsample, however many there are. The generator must not be used by anyone else.
    """

    def __init__(self, rng: np.random.Generator, slots: int, rates: Sequence[tuple[float, int]]) -> None:
        """``rates`` lists (sampling rate, number of subsamples at it) in order. They decide the layout, and no data."""
        self._rng, self._slots = rng, slots
        self._dtype = np.int32 if slots < 2**31 else np.int64
        self._rates = [rate for rate, count in rates for _ in range(count)]
        self._union: Indices | None = None
        self._next: Iterator[Indices | None]
        if expected_coverage(rates) >= _FULL_SHARE:
            self._next = (None if rate >= 1 else poisson_subsample(rng, slots, rate) for rate in self._rates)
        elif sum(self._rates) * slots <= _KEPT:
            kept = list(self._draw())
            self._union, self._next = _list_union(kept, slots)
        else:
            start = rng.bit_generator.state
            self._union = self._unite(self._draw())
            rng.bit_generator.state = start
            self._next = (np.searchsorted(self.union, indices) for indices in self._draw())

    @property
    def union(self) -> Indices:
        """Sorted slots to gather."""
        return np.arange(self._slots, dtype=self._dtype) if self._union is None else self._union

    def next(self) -> Indices | None:
        """Positions, within :attr:`union`, of the next subsample; None for the whole union.

        Raises:
            StopIteration: after the last.
        """
        return next(self._next)

    def _draw(self) -> Iterator[Indices]:
        return (poisson_subsample(self._rng, self._slots, rate).astype(self._dtype) for rate in self._rates)

    def _unite(self, drawn: Iterator[Indices]) -> Indices:
        if sum(self._rates) <= _SPARSE_SHARE:
            return np.unique(np.concatenate(list(drawn)))
        member = np.zeros(self._slots, dtype=bool)
        for indices in drawn:
            member[indices] = True
        return np.flatnonzero(member).astype(self._dtype)
