"""Clipped sums of centred potentials (Manousakas et al., *Bayesian Pseudocoresets*, 2020, Eq. 6)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.query import Integers
from app.inference.private_zone.mechanisms import GRID, BadQuery, raise_clip
from app.inference.private_zone.queries.blocks import check_array, compute_clipped_sum
from app.inference.private_zone.rowwise import add_to_rows


@dataclass(frozen=True, slots=True, eq=False)
class PotentialSum:
    """The sum ``sum_b clip_C(G(x_b))`` of centred potentials; the answer is ``(S,)``.

    ``G`` holds the log-likelihoods at ``draws`` ``(S, D)``, minus their mean over the draws. ``antithetic`` draws are
    pairs around a common centre: the first half, then their partners in the same order, up to rounding. Clipping and
    rounding commute with a change of sign, so losses are summed.
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
        """Raise BadQuery for draws that are not finite parameters of ``model``, or incomplete pairs."""
        check_array(self.draws, (self.length, model.dimension), "draws")
        if self.antithetic and self.length % 2:
            raise BadQuery("the number of antithetic draws must be even")
        raise_clip(self.clip)

    def sum(self, model: Model, rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """Compute the sum as :meth:`app.inference.core.query.Query.sum`."""
        losses, clip = _make_losses(model, self.draws, antithetic=self.antithetic), raise_clip(self.clip)
        length, buffer = self.length, np.empty(0, dtype=np.float32)
        mean = np.full(length, -1 / length, dtype=np.float32)

        def centre_losses(block: Array32) -> Array32:
            nonlocal buffer
            size = len(block) * length
            if len(buffer) < size:
                buffer = np.empty(size, dtype=np.float32)
            values = losses(block, buffer[:size].reshape(length, -1).T)
            add_to_rows(values, values @ mean)
            return values

        return -compute_clipped_sum(centre_losses, rows, present, rows_per_unit, length=length, clip=clip)

    def scales(self, sigma: float) -> float:
        """``sigma K`` for every draw."""
        return sigma * GRID

    def answer(self, noised: Integers) -> Array64:
        """Convert to ``(S,)`` numbers in nats."""
        return noised.astype(np.float64) * (raise_clip(self.clip) / GRID)


def _make_losses(model: Model, draws: Array64, *, antithetic: bool) -> Callable[[Array32, Array32], Array32]:
    """Make a function that writes losses of rows into an array.

    The array is ``(n, S)``, in Fortran order. Each row's losses are defined up to a constant. Draws are copied to one
    memory layout, because products may round differently in another one. A query that was sent between processes has
    another one.
    """
    with np.errstate(all="ignore"):
        if antithetic:
            half = len(draws) // 2
            centre = (0.5 * (draws[0] + draws[half])).astype(np.float32)
            deviations = (0.5 * (draws[:half] - draws[half:])).astype(np.float32, order="F")
            return lambda rows, out: model.paired_losses(rows, centre, deviations, out)
        single = draws.astype(np.float32, order="F")
    return lambda rows, out: np.negative(model.log_likelihood(rows, single, out=out), out=out)
