"""Poisson subsamples, all drawn before the first row is read.

Each slot enters a subsample independently with probability q: draw ``n ~ Binomial(slots, q)``, then ``n`` slots
uniformly without replacement. Where few slots are expected, draw the gaps between them instead: NumPy's binomial then
cuts its tail ten standard deviations out, which no share of delta pays for. Subsamples do not depend on data, so their
union can be gathered in one pass.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.integer]

_SPARSE_SHARE = 1 / 8
_FULL_SHARE = 0.9
_FEW = 30.0
"""Expected slots from which NumPy's binomial leaves inversion with its cut tail."""
_GAPS = 64


def poisson_subsample(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """Sorted, unique slots, each in with probability ``rate``; time and memory of the order of their number."""
    if rate >= 1:
        return np.arange(slots)
    if min(rate, 1 - rate) * slots <= _FEW:
        return _by_gaps(rng, slots, rate)
    count = int(rng.binomial(slots, rate))
    chosen = rng.choice(slots, size=count, replace=False, shuffle=False)
    chosen.sort()
    return chosen


def _by_gaps(rng: np.random.Generator, slots: int, rate: float) -> NDArray[np.int64]:
    """The same distribution from geometric gaps between the slots that are in."""
    runs, last, size = [], -1, int(1.1 * slots * rate) + _GAPS
    while last < slots:
        gaps = np.minimum(rng.geometric(rate, size=size), slots + 1)
        runs.append(last + np.cumsum(gaps))
        last = int(runs[-1][-1])
    found = np.concatenate(runs)
    return found[found < slots]


class Subsamples:
    """A sequence of subsamples, drawn twice from the same state of the generator.

    The first pass, on construction, finds the union; the second hands the subsamples out one by one. So memory holds
    the union and one subsample, however many there are. The generator must not be used by anyone else.
    """

    def __init__(self, rng: np.random.Generator, slots: int, rates: Sequence[tuple[float, int]]) -> None:
        """``rates`` lists (sampling rate, number of subsamples at it) in order."""
        self._rng, self._slots = rng, slots
        start = rng.bit_generator.state
        self._union = self._draw_union(rates)
        rng.bit_generator.state = start
        self._rates = iter([rate for rate, count in rates for _ in range(count)])

    def _draw_union(self, rates: Sequence[tuple[float, int]]) -> Indices | None:
        """Sorted slots that any subsample holds, or None for all of them: decided by slots and rates alone."""
        if self._expected_coverage(rates) >= _FULL_SHARE:
            return None
        drawn = (
            poisson_subsample(self._rng, self._slots, rate).astype(self._dtype())
            for rate, count in rates
            for _ in range(count)
        )
        if sum(rate * count for rate, count in rates) <= _SPARSE_SHARE:
            return np.unique(np.concatenate(list(drawn)))
        member = np.zeros(self._slots, dtype=bool)
        for indices in drawn:
            member[indices] = True
        return np.flatnonzero(member).astype(self._dtype())

    def _expected_coverage(self, rates: Sequence[tuple[float, int]]) -> float:
        missed = sum(count * np.log1p(-rate) if rate < 1 else -np.inf for rate, count in rates)
        return float(-np.expm1(missed))

    def _dtype(self) -> type[np.integer]:
        return np.int32 if self._slots < 2**31 else np.int64

    @property
    def union(self) -> Indices:
        """Sorted slots to gather."""
        return np.arange(self._slots, dtype=self._dtype()) if self._union is None else self._union

    def next(self) -> NDArray[np.integer] | None:
        """Positions, within :attr:`union`, of the next subsample; None for the whole union.

        Raises:
            StopIteration: after the last.
        """
        indices = self.next_slots()
        if indices is None or self._union is None:
            return indices
        return np.searchsorted(self._union, indices.astype(self._dtype()))

    def next_slots(self) -> NDArray[np.int64] | None:
        """The slots of the next subsample themselves; None for all. Raises as :meth:`next`."""
        rate = next(self._rates)
        return None if rate >= 1 else poisson_subsample(self._rng, self._slots, rate)
