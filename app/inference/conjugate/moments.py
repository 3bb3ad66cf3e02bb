"""Common base of conjugate models with one statistic, ``v v'`` of a row v.

Nothing moves, and no row is cut.
"""

from typing import ClassVar, Final

import numpy as np

from app.inference.core import reasons
from app.inference.core.design import Design
from app.inference.core.model import Array32, Array64
from app.inference.core.reasons import Reason
from app.inference.core.release import Grade
from app.inference.core.statistics import (
    CERTAIN,
    STATISTIC_SUM,
    Averages,
    StatisticBlock,
    compute_packed_length,
    multiply_pairs,
    raise_to_noise,
    unpack_symmetric,
)

MOMENTS: Final = "moments"


class FixedMoments:
    """The moments of design rows with one more number.

    The size of that number is at most 1. So ``|v v'|_F = |v|^2`` is at most the largest square of a design row, plus 1.
    One answer is enough, and a belief is empty.
    """

    __slots__ = ()
    kind: ClassVar[str] = STATISTIC_SUM
    usual_share: ClassVar[float | None] = None
    usual_iterations: ClassVar[int] = 1
    usual_batch: ClassVar[int | None] = None
    tail: ClassVar[float] = 0.0
    design: Design

    @property
    def belief_shape(self) -> tuple[int, ...]:
        """``(0,)``."""
        return (0,)

    def list_blocks(self, radius: float, *, moving: bool) -> tuple[StatisticBlock, ...]:
        """List the moments, which are fixed."""
        if moving:
            return ()
        length = compute_packed_length(self.design.width + 1)
        return (StatisticBlock(MOMENTS, length, self.design.largest_square + 1),)

    @np.errstate(all="ignore")
    def contribute(self, rows: Array32, belief: Array64, radius: float, *, moving: bool) -> Array32:
        """Compute packed ``v v'``."""
        return multiply_pairs(rows)

    def start(self, rng: np.random.Generator) -> Array64:
        """Return an empty belief."""
        return np.zeros(0)

    def update(self, averages: Averages, belief: Array64) -> Array64:
        """Return an empty belief."""
        return np.zeros(0)


def read_moments(averages: Averages, presence: int) -> tuple[Array64, float, list[tuple[Reason, Grade]]]:
    """Read the noised moments ``(D, D)``, raised to their noise, with findings.

    ``presence`` is the place of the coordinate that is 1 in every row; its square is the count. Also returns the
    standard deviation of the noise of a packed value.
    """
    noise = averages.noise[MOMENTS]
    noised = unpack_symmetric(averages.sums[MOMENTS])
    moments, is_hidden = raise_to_noise(noised, noise)
    findings = [(reasons.NOISE_NOT_KNOWN, Grade.CENTRE_ONLY)] if is_hidden else []
    if noised[presence, presence] < CERTAIN * noise:  # not the raised count, which may be above this limit
        findings.append((reasons.FEW_ROWS, Grade.NOT_USABLE))
    return moments, noise, findings
