"""Clipped sums of centred potentials (Bayesian Pseudocoresets, 2020, Eq. 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, admissible_clip
from app.inference.private_zone.queries.blocks import check_array, clipped_sum
from app.inference.private_zone.rowwise import add_to_rows


@dataclass(frozen=True, slots=True, eq=False)
class PotentialSum:
    """``sum_b clip_C(G(x_b))``: log-likelihoods at ``draws`` ``(S, D)``, centred over the draws; answer ``(S,)``.

    ``antithetic`` draws come in pairs around a centre that is theirs in common: half of them first, then their partners
    in the same order, up to rounding. What clipping and rounding make of a vector does not depend on its sign, so
    losses are summed.
    """

    draws: Array64
    clip: float
    antithetic: bool = False
    kind: ClassVar[str] = "potential_sum"

    @property
    def length(self) -> int:
        """The number S of draws."""
        return len(self.draws)

    def check(self, model: Model, design: Design) -> None:
        """Raise BadQuery unless draws and clip are finite, the draws parameters of ``model``, and pairs complete."""
        check_array(self.draws, (self.length, model.dimension), "draws")
        if self.antithetic and self.length % 2:
            raise BadQuery("antithetic draws come in pairs")
        admissible_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """As :meth:`app.inference.core.query.Query.sum`."""
        losses, clip = _losses(model, self.draws, antithetic=self.antithetic), admissible_clip(self.clip)
        length, buffer = self.length, np.empty(0, dtype=np.float32)
        mean = np.full(length, -1 / length, dtype=np.float32)

        def centred(block: Array32) -> Array32:
            nonlocal buffer
            size = len(block) * length
            if len(buffer) < size:
                buffer = np.empty(size, dtype=np.float32)
            values = losses(block, buffer[:size].reshape(length, -1).T)
            add_to_rows(values, values @ mean)
            return values

        return -clipped_sum(centred, rows, present, rows_per_unit, length=length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every draw."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """``(S,)``, in nats."""
        return noised.astype(np.float64) * (admissible_clip(self.clip) / GRID)


def _losses(model: Model, draws: Array64, *, antithetic: bool) -> Callable[[Array32, Array32], Array32]:
    """How to write the losses of rows, each up to a constant, into an array ``(n, S)`` that lies draw after draw.

    Draws are laid out anew: products may round otherwise by how they lie, which differs once a query was sent.
    """
    with np.errstate(all="ignore"):
        if antithetic:
            half = len(draws) // 2
            centre = (0.5 * (draws[0] + draws[half])).astype(np.float32)
            deviations = (0.5 * (draws[:half] - draws[half:])).astype(np.float32, order="F")
            return lambda rows, out: model.paired_losses(rows, centre, deviations, out)
        single = draws.astype(np.float32, order="F")
    return lambda rows, out: np.negative(model.log_likelihood(rows, single, out=out), out=out)
