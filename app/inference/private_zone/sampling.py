"""Poisson subsamples, drawn from public facts alone.

Each slot enters a subsample independently with probability q. Up to q = 1/4 the gaps between the slots are drawn, which
are geometric. For larger q, ``n ~ Binomial(slots, q)`` is drawn, then ``n`` slots uniformly without replacement. If
few slots are expected inside or outside the subsample, gaps are drawn as well: NumPy's binomial would cut its tail ten
standard deviations from the mean there, and no share of delta covers that. Subsamples do not depend on data. They may
be drawn all at once, so that their union is gathered in one pass, or each when its query is asked.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer]

_MOST_STORED = 1 << 20
"""Largest expected number of indices, of all subsamples together, that are stored instead of drawn again."""
_SPARSE_SHARE = 1 / 8
_FULL_SHARE = 0.9
_FEW = 30.0
"""Expected slots up to which NumPy's binomial uses inversion, which cuts the tail."""
_BY_GAPS = 1 / 4
"""Largest rate at which drawing gaps is faster than drawing slots without replacement."""
_GAPS = 64
_DENSE = 1 / 64
"""Least rate at which slots are drawn in pieces, because a subsample is a large part of them."""
_PIECE = 1 << 22
_MOST_LISTED = 16
"""Largest number of slots for each drawn index at which a table of all slots is faster than sorting."""


def draw_poisson_subsample(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """Draw sorted, unique slots, each with probability ``rate``.

    Time and memory are of the order of their number.
    """
    pieces = list(draw_poisson_pieces(rng, slots, rate))
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def draw_poisson_pieces(rng: np.random.Generator, slots: int, rate: float) -> Iterator[NDArray[np.int64]]:
    """Draw a subsample as :func:`draw_poisson_subsample`, in consecutive pieces.

    A dense subsample is drawn range by range; slots are independent, so its law is the same.
    """
    size = _PIECE if _DENSE <= rate < 1 else slots
    for start in range(0, slots, size):
        piece = _draw(rng, min(size, slots - start), rate)
        yield piece if start == 0 else piece + start


def _draw(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    if rate >= 1:
        return np.arange(slots)
    if rate <= _BY_GAPS or min(rate, 1 - rate) * slots <= _FEW:
        return _draw_by_gaps(rng, slots, rate)
    count = int(rng.binomial(slots, rate))
    chosen = rng.choice(slots, size=count, replace=False, shuffle=False)
    chosen.sort()
    return chosen


def _draw_by_gaps(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """Draw a subsample by the geometric gaps between its slots.

    Gaps are clipped to at least one, because NumPy returns zero where its logarithm is exactly zero.
    """
    runs, last, size = [], -1, int(1.1 * slots * rate) + _GAPS
    while last < slots:
        gaps = np.clip(rng.geometric(rate, size=size), 1, slots + 1)
        runs.append(last + np.cumsum(gaps))
        last = int(runs[-1][-1])
    drawn = np.concatenate(runs)
    return drawn[drawn < slots]


def compute_expected_coverage(rates: Sequence[tuple[float, int]]) -> float:
    """Compute the expected share of slots that are in any subsample.

    ``rates`` lists (sampling rate, number of subsamples).
    """
    missed = sum(count * np.log1p(-rate) if rate < 1 else -np.inf for rate, count in rates)
    return float(-np.expm1(missed))


def _list_union(subsamples: Sequence[Indices], slots: int) -> tuple[Indices, Iterator[Indices]]:
    """Compute the union of ``subsamples``, and each one's positions in it.

    It sorts the indices if there are too many slots for a table of them.
    """
    drawn = np.concatenate(subsamples)
    if slots > _MOST_LISTED * len(drawn):
        union, places = np.unique(drawn, return_inverse=True)
        return union, iter(np.split(places, np.cumsum([len(indices) for indices in subsamples])[:-1]))
    position = np.zeros(slots, dtype=drawn.dtype)
    position[drawn] = 1
    union = np.flatnonzero(position).astype(drawn.dtype)
    position[union] = np.arange(len(union), dtype=drawn.dtype)
    return union, (position[indices] for indices in subsamples)


class Subsamples:
    """A sequence of subsamples and their union.

    Few subsamples are drawn once and stored. Many are drawn twice from the same state of the generator: the first pass
    computes the union, the second yields the subsamples one by one. So memory holds the union and one subsample. No
    other code may use the generator.
    """

    def __init__(self, rng: np.random.Generator, slots: int, rates: Sequence[tuple[float, int]]) -> None:
        """Draw the subsamples or prepare to draw them; ``rates`` alone decides which.

        ``rates`` lists (sampling rate, number of subsamples) in order.
        """
        self._rng, self._slots = rng, slots
        self._dtype = np.int32 if slots < 2**31 else np.int64
        self._rates = [rate for rate, count in rates for _ in range(count)]
        self._union: Indices | None = None
        self._next: Iterator[Indices | None]
        if compute_expected_coverage(rates) >= _FULL_SHARE:
            self._next = (None if rate >= 1 else draw_poisson_subsample(rng, slots, rate) for rate in self._rates)
        elif sum(self._rates) * slots <= _MOST_STORED:
            self._union, self._next = _list_union(list(self._draw()), slots)
        else:
            start = rng.bit_generator.state
            self._union = self._unite(self._draw())
            rng.bit_generator.state = start
            self._next = (np.searchsorted(self.union, indices) for indices in self._draw())

    @property
    def union(self) -> Indices:
        """The sorted slots of all subsamples together."""
        return np.arange(self._slots, dtype=self._dtype) if self._union is None else self._union

    def next(self) -> Indices | None:
        """Return the positions of the next subsample in :attr:`union`; None for the whole union.

        Raises:
            StopIteration: after the last subsample.
        """
        return next(self._next)

    def _draw(self) -> Iterator[Indices]:
        return (draw_poisson_subsample(self._rng, self._slots, rate).astype(self._dtype) for rate in self._rates)

    def _unite(self, drawn: Iterator[Indices]) -> Indices:
        if sum(self._rates) <= _SPARSE_SHARE:
            return np.unique(np.concatenate(list(drawn)))
        member = np.zeros(self._slots, dtype=bool)
        for indices in drawn:
            member[indices] = True
        return np.flatnonzero(member).astype(self._dtype)
