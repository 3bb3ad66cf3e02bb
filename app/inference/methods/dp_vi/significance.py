"""Whether answers say anything of rows: how many standard deviations of noise they exceed zero by.

A table that is empty, or nearly, has answers of noise alone. A belief that follows them is confident in a random place,
and its own width hides that: the start of the climb assumes a row in every slot. So the width counts only where
something was measured that noise does not explain.

- Where information matrices were asked for: their mean diagonal.
- Otherwise scores. Their slope along the deviations that they were asked at is the information, and their squared
  length exceeds that of noise while the climb is on its way. Either is enough.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.core.model import Array64

LEAST_SIGNIFICANCE: Final = 3.0
"""Standard deviations: noise alone exceeds them once in several hundred releases."""


@dataclass(frozen=True, slots=True)
class Significance:
    """Sums over answered scores: ``slope`` along deviations, its ``variance`` by noise, ``excess`` of squared length.

    ``values`` counts the numbers in the answers.
    """

    slope: float = 0.0
    variance: float = 0.0
    excess: float = 0.0
    values: int = 0

    def with_score(self, answer: Array64, deviation: Array64, noise: float) -> "Significance":
        """With one more noised score ``(D,)``, asked at that ``deviation`` from the mean."""
        return Significance(
            self.slope - float(answer @ deviation),
            self.variance + noise**2 * float(deviation @ deviation),
            self.excess + float(answer @ answer) / noise**2 - len(answer),
            self.values + len(answer),
        )

    @property
    def deviations(self) -> float:
        """Of the noise: by how many the scores exceed it; not positive before the first one."""
        if not self.values or not self.variance > 0:
            return 0.0
        return max(self.slope / math.sqrt(self.variance), self.excess / math.sqrt(2 * self.values))


def measure_matrix_significance(information: Array64, noise: float) -> float:
    """Deviations of ``noise``, that of each diagonal value, by which the mean diagonal exceeds zero."""
    return float(np.mean(information.diagonal())) * math.sqrt(len(information)) / noise
