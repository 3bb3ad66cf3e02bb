"""Sums of winsorised squares and deviations: the tails of design columns."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum
from app.inference.private_zone.queries.moments import LEAST_SQUARE, Coordinates

NEAR: Final = 2.5
FAR: Final = 5.0
"""The two winsorisation bounds, in deviations."""
OF_SIDES: Final = 0.5
"""Weight of the deviations relative to their squares; deviations show the side of a tail."""
LEAST_DEVIATION: Final = 2.0**-20
MOST_DEVIATION: Final = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class TailSum(Coordinates):
    """A sum of winsorised squares and deviations.

    It is ``sum_b clip_C((n * n, f * f, n / 2))`` of standardised coordinates ``t = z / deviation``, with ``deviation``
    ``(k,)``. ``n`` is t clipped to +-:data:`NEAR` and divided by it; ``f`` is t clipped to +-:data:`FAR` and divided by
    it. The answer is ``(3, k)``. An intercept is needed, because folded rows without one give coordinates up to their
    sign.
    """

    deviation: Array64
    clip: float
    kind: ClassVar[str] = "tail_sum"

    @property
    def length(self) -> int:
        """Two sums of squares and one of deviations, for each coordinate."""
        return 3 * (self.width - 1)

    def check(self, model: Model, design: Design) -> None:
        """Check the coordinates, the intercept, and that deviations are in range."""
        Coordinates.check(self, model, design)
        if not self.intercept:
            raise BadQuery("this query needs a design with an intercept")
        check_array(self.deviation, (self.width - 1,), "deviation")
        if not np.all((self.deviation >= LEAST_DEVIATION) & (self.deviation <= MOST_DEVIATION)):
            raise BadQuery(f"a deviation must be from {LEAST_DEVIATION:g} to {MOST_DEVIATION:g}")
        raise_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""

        def tails(block: Array32) -> Array32:
            standardised = self.coordinates(model, block)
            standardised /= self.deviation.astype(np.float32)
            return _winsorise(standardised)

        clip = raise_clip(self.clip)
        return compute_clipped_sum(tails, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(3, k)`` sums."""
        return noised.astype(np.float64).reshape(3, -1) * (raise_clip(self.clip) / GRID)


def _winsorise(t: Array32) -> Array32:
    """Compute the contribution ``(n, 3 k)`` of each row of standardised coordinates. Row zone."""
    near, far = (np.clip(t / np.float32(most), -1, 1) for most in (NEAR, FAR))
    squares = (np.maximum(np.square(each), LEAST_SQUARE) for each in (near, far))
    return np.concatenate([*squares, np.float32(OF_SIDES) * near], axis=1)
