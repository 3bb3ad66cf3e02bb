"""Sums of scores, bounded without bias where the model allows, or plainly clipped."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, admissible_clip
from app.inference.private_zone.queries.blocks import check_array, clipped_sum


@dataclass(frozen=True, slots=True, eq=False)
class _ScoreSum:
    """At ``theta`` ``(D,)``, in the coordinates ``W score`` for ``transform`` W ``(D, D)``; answer ``(D,)``."""

    theta: Array64
    transform: Array64
    clip: float

    @property
    def length(self) -> int:
        """The number D of parameters."""
        return len(self.theta)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless all is finite and of the shape of ``model``'s parameter."""
        check_array(self.theta, (model.dimension,), "theta")
        check_array(self.transform, (self.length, self.length), "transform")
        admissible_clip(self.clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every coordinate."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(D,)``, in the transformed coordinates."""
        return noised.astype(np.float64) * (admissible_clip(self.clip) / GRID)


@dataclass(frozen=True, slots=True, eq=False)
class BoundedScoreSum(_ScoreSum):
    """``sum_b w_b W score(x_b)``, each row of norm at most C by a weight that knows nothing of its target.

    Its mean is zero where ``theta`` is the truth (Kuensch, Stefanski & Carroll 1989). The sum over a unit of many rows
    is clipped to C in addition. Where ``apart`` is not zero, the last coordinate has a weight of its own, by which it
    is at most that, and the others one by which they have what that leaves of C.
    """

    apart: float = 0.0
    kind: ClassVar[str] = "bounded_score_sum"

    def check(self, model: Model, design: Design) -> None:
        """As of all sums of scores; ``apart`` is below C."""
        super(BoundedScoreSum, self).check(model, design)
        if not 0 <= self.apart < admissible_clip(self.clip):
            raise BadQuery("the bound of a part is one, and below that of the whole")

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.core.query.Query.sum`."""
        clip = admissible_clip(self.clip)

        def bounded(block: Array32) -> Array32:
            if not self.apart:
                return model.bounded_scores(block, self.theta, self.transform, clip)
            rest = math.sqrt(clip - self.apart) * math.sqrt(clip + self.apart)
            parts = (self.transform[:-1], rest), (self.transform[-1:], self.apart)
            return np.hstack([model.bounded_scores(block, self.theta, *part) for part in parts])

        return clipped_sum(bounded, rows, present, rows_per_unit, length=self.length, clip=clip)


@dataclass(frozen=True, slots=True, eq=False)
class ClippedScoreSum(_ScoreSum):
    """``sum_b clip_C(W score(x_b))``: plain clipping, biased where it bites."""

    kind: ClassVar[str] = "clipped_score_sum"

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.core.query.Query.sum`."""
        with np.errstate(all="ignore"):
            transform = self.transform.astype(np.float32)

        def transformed(block: Array32) -> Array32:
            found: Array32 = (transform @ model.scores(block, self.theta).T).T
            return found

        clip = admissible_clip(self.clip)
        return clipped_sum(transformed, rows, present, rows_per_unit, length=self.length, clip=clip)
