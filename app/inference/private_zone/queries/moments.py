"""Sums of first and second moments of design columns."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import compute_clipped_sum

CENTRE_GRID = 2.0**20
"""Centres are multiples of its inverse, so a centred coordinate is zero or at least 2^-44 (W14)."""
WEIGHTS = (2.0**-60, 2.0**60)
"""Least and largest weight of a row in a count; its square is a normal number (W14)."""
LEAST_SQUARE = np.float32(2.0**-60)
"""Smaller squares are replaced by this, whose square is still a normal number (W14)."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Standardised coordinates ``z`` of design rows, without the intercept.

    ``z = (x - centre) / scale``; ``width`` is the number p of design coordinates x. ``centre`` is zero, or ``(k,)`` on
    the grid. The latter needs an intercept, or a model without a target: rows that are folded with a target, without an
    intercept, give coordinates up to their sign.
    """

    scale: float
    width: int
    intercept: bool
    centre: Array64 | float = field(default=0.0, kw_only=True)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery for a shape, scale or centre that does not fit ``design``."""
        if (self.width, self.intercept) != (design.width, design.intercept):
            raise BadQuery("moments must be of all design coordinates")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise BadQuery("a scale must be positive and finite")
        centre = np.asarray(self.centre)
        if centre.ndim and (not (self.intercept or design.target is None) or centre.shape != (self.columns,)):
            raise BadQuery("a centre must have one number for each coordinate, and coordinates must have a sign")
        on_grid = np.rint(centre * CENTRE_GRID) == centre * CENTRE_GRID
        if not np.all(on_grid & (np.abs(centre) <= 1)) or (not centre.ndim and centre != 0):
            raise BadQuery("a centre must be zero, or on the grid and within the bounds of coordinates")

    @property
    def columns(self) -> int:
        """The number k of coordinates."""
        return self.width - int(self.intercept)

    def coordinates(self, model: Model, rows: Array32) -> Array32:
        """Compute ``z`` ``(n, k)``; without an intercept but with a target, each row up to its sign."""
        features: Array32 = model.features(rows)
        if self.intercept:
            features = features[:, :-1] * features[:, -1:]
        return (features - np.float32(self.centre)) / np.float32(self.scale)


@dataclass(frozen=True, slots=True, eq=False)
class MomentSum(Coordinates):
    """The moment sum ``sum_b clip_C((w, z, z * z))`` for k coordinates.

    The answer is ``(1 + 2 k,)``: the count, and sums in units of the scale. ``weight`` is w, the size of a row in the
    count. A larger weight means less noise in the count.
    """

    clip: float
    weight: float = field(default=1.0, kw_only=True)
    kind: ClassVar[str] = "moment_sum"

    def check(self, model: Model, design: Design) -> None:
        """Check the coordinates, the clipping norm and the weight."""
        Coordinates.check(self, model, design)
        raise_clip(self.clip)
        if not WEIGHTS[0] <= self.weight <= WEIGHTS[1]:
            raise BadQuery("the weight of a row in a count must be a number whose square is normal")

    @property
    def length(self) -> int:
        """One count, k sums and k sums of squares."""
        return 1 + 2 * self.columns

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""

        def moments(block: Array32) -> Array32:
            return self.moments(model, block)

        clip = raise_clip(self.clip)
        return compute_clipped_sum(moments, rows, present, rows_per_unit, length=self.length, clip=clip)

    def moments(self, model: Model, rows: Array32) -> Array32:
        """Compute the contribution of each row, ``(n, 1 + 2 k)``. Row zone."""
        values = append_squares(self.coordinates(model, rows))
        values[:, 0] = self.weight
        return values

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every value."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to the count, and to sums in units of the scale."""
        sums = noised.astype(np.float64) * (raise_clip(self.clip) / GRID)
        sums[0] /= self.weight
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class MeanSum(MomentSum):
    """The sum ``sum_b clip_C((w, z))``.

    The answer is ``(1 + k,)``: the count, and sums in units of the scale.
    """

    kind: ClassVar[str] = "mean_sum"

    @property
    def length(self) -> int:
        """One count and k sums."""
        return 1 + self.columns

    def moments(self, model: Model, rows: Array32) -> Array32:
        """Compute the contribution of each row, ``(n, 1 + k)``. Row zone."""
        counts = np.full((len(rows), 1), self.weight, np.float32)
        return np.concatenate([counts, self.coordinates(model, rows)], axis=1)


def append_squares(values: Array32) -> Array32:
    """Append squares to ``values`` z ``(n, k)``: ``(1, z, z * z)``, ``(n, 1 + 2 k)``. Row zone."""
    squares = np.maximum(np.square(values), LEAST_SQUARE)
    return np.concatenate([np.ones((len(values), 1), np.float32), values, squares], axis=1)
