"""How much of their variance single design columns have far from their means, and on which side."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, admissible_clip
from app.inference.private_zone.queries.blocks import check_array, clipped_sum
from app.inference.private_zone.queries.moments import LEAST_SQUARE, Coordinates

NEAR: Final = 2.5
FAR: Final = 5.0
"""Deviations beyond which a coordinate counts as one that is just there."""
OF_SIDES: Final = 0.5
"""What deviations themselves weigh beside their squares."""
LEAST_DEVIATION: Final = 2.0**-20
MOST_DEVIATION: Final = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class TailSum(Coordinates):
    """``sum_b clip_C((n * n, f * f, n / 2))`` of standardised coordinates t, winsorised: ``n`` near, ``f`` far.

    ``t = z / deviation`` with ``deviation`` ``(k,)``; ``n`` is t within +-:data:`NEAR`, divided by it, and ``f`` t
    within +-:data:`FAR`, divided by that. Answer ``(3, k)``. There is an intercept: else coordinates have no sign.
    """

    deviation: Array64
    clip: float
    kind: ClassVar[str] = "tail_sum"

    @property
    def length(self) -> int:
        """Two sums of squares, and one of deviations."""
        return 3 * (self.width - 1)

    def check(self, model: Model, design: Design) -> None:
        """As that of the base; there is an intercept, and deviations are within limits."""
        Coordinates.check(self, model, design)
        if not self.intercept:
            raise BadQuery("tails have a side, and coordinates without an intercept no sign")
        check_array(self.deviation, (self.width - 1,), "deviation")
        if not np.all((self.deviation >= LEAST_DEVIATION) & (self.deviation <= MOST_DEVIATION)):
            raise BadQuery("a deviation is positive, and within what bounded columns have")
        admissible_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.core.query.Query.sum`."""

        def tails(block: Array32) -> Array32:
            standardised = self.coordinates(model, block)
            standardised /= self.deviation.astype(np.float32)
            return _winsorise(standardised)

        clip = admissible_clip(self.clip)
        return clipped_sum(tails, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(3, k)``."""
        return noised.astype(np.float64).reshape(3, -1) * (admissible_clip(self.clip) / GRID)


def _winsorise(t: Array32) -> Array32:
    """What each row of standardised coordinates adds, ``(n, 3 k)``. Row zone."""
    near, far = (np.clip(t / np.float32(most), -1, 1) for most in (NEAR, FAR))
    squares = (np.maximum(np.square(each), LEAST_SQUARE) for each in (near, far))
    return np.concatenate([*squares, np.float32(OF_SIDES) * near], axis=1)
