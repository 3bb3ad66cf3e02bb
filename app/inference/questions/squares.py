"""Sums of squared design coordinates: the diagonal of a second-moment matrix."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import GRID, BadQuestion, admissible_clip
from app.inference.protocol import Array32, Array64, Integers, Model
from app.inference.questions.blocks import clipped_sum


@dataclass(frozen=True, slots=True)
class SquareSum:
    """``sum_b clip_C(x_b * x_b)`` over the ``width`` p design coordinates; answer ``(p,)``."""

    clip: float
    width: int
    kind: ClassVar[str] = "square_sum"

    @property
    def length(self) -> int:
        """The number p of coordinates."""
        return self.width

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuestion unless the width is the design's and the clip finite."""
        if self.width != design.width:
            raise BadQuestion("squares are those of all design coordinates")
        admissible_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.protocol.Question.sum`."""

        def squares(block: Array32) -> Array32:
            return np.asarray(np.square(model.features(block)))

        clip = admissible_clip(self.clip)
        return clipped_sum(squares, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every coordinate."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(p,)``, in squared design units."""
        return noised.astype(np.float64) * (admissible_clip(self.clip) / GRID)
