"""Clipped sums of centred potentials (Bayesian Pseudocoresets, 2020, Eq. 6)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import GRID, admissible_clip
from app.inference.protocol import Array32, Array64, Integers, Model
from app.inference.questions.blocks import block_rows, check_array, clipped_sum


@dataclass(frozen=True, slots=True, eq=False)
class PotentialSum:
    """``sum_b clip_C(G(x_b))``: log-likelihoods at ``draws`` ``(S, D)``, centred over the draws; answer ``(S,)``."""

    draws: Array64
    clip: float
    kind: ClassVar[str] = "potential_sum"

    @property
    def length(self) -> int:
        """The number S of draws."""
        return len(self.draws)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuestion unless draws and clip are finite and the draws parameters of ``model``."""
        check_array(self.draws, (self.length, model.dimension), "draws")
        admissible_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.protocol.Question.sum`."""
        with np.errstate(all="ignore"):
            draws = self.draws.astype(np.float32)
        buffer = np.empty((block_rows(self.length, rows_per_unit), self.length), dtype=np.float32)
        mean = np.full(len(draws), 1 / len(draws), dtype=np.float32)

        def centred(block: Array32) -> Array32:
            potentials: Array32 = model.log_likelihood(block, draws, out=buffer)
            potentials -= (potentials @ mean)[:, None]
            return potentials

        clip = admissible_clip(self.clip)
        return clipped_sum(centred, rows, present, rows_per_unit, length=self.length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every draw."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(S,)``, in nats."""
        return noised.astype(np.float64) * (admissible_clip(self.clip) / GRID)
