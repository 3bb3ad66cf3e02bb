"""Significance of answers: the signal in standard deviations of the noise.

The answers of an empty, or nearly empty, table are noise. The approximation then has a random mean, and its width does
not show that, because its start assumes a row in every slot. So a release is trusted only if some measurement exceeds
its noise:

- the mean diagonal of the information matrices, if the plan has such queries;
- otherwise the scores. Their slope along the deviations at which they were asked is the information, and their squared
  length exceeds that of the noise before convergence. One of the two suffices.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from app.inference.core.model import Array64

LEAST_SIGNIFICANCE: Final = 3.0
"""Least significance in standard deviations; noise alone exceeds it once in several hundred releases."""


@dataclass(frozen=True, slots=True)
class Significance:
    """Sums over answered scores.

    ``slope`` is the slope of the scores along deviations, and ``variance`` the variance of its noise. ``excess`` is the
    excess of squared lengths in units of the noise's variance. ``values`` counts the values in the answers.
    """

    slope: float = 0.0
    variance: float = 0.0
    excess: float = 0.0
    values: int = 0

    def with_score(self, answer: Array64, deviation: Array64, noise: float) -> "Significance":
        """Add one noised score ``(D,)``, asked at ``deviation`` ``(D,)`` from the mean.

        ``noise`` is the standard deviation of each value.
        """
        return Significance(
            self.slope - float(answer @ deviation),
            self.variance + noise**2 * float(deviation @ deviation),
            self.excess + float(answer @ answer) / noise**2 - len(answer),
            self.values + len(answer),
        )

    @property
    def deviations(self) -> float:
        """The significance of the scores in standard deviations; 0 before the first score."""
        if not self.values or not self.variance > 0:
            return 0.0
        return max(self.slope / math.sqrt(self.variance), self.excess / math.sqrt(2 * self.values))


def measure_matrix_significance(information: Array64, noise: float) -> float:
    """Measure the significance of the mean diagonal, in standard deviations.

    ``noise`` is the standard deviation of each diagonal value.
    """
    return float(np.mean(information.diagonal())) * math.sqrt(len(information)) / noise
