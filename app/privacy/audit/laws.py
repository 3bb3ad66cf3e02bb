"""The claimed law of a canary's answers, and its trade-off function.

An auditor adds one unit, the canary, to a table whose other units contribute nothing. It projects each noised answer on
the canary's contribution and divides by the clipping norm. The result is an *aligned answer*. Without the canary it
follows ``N(0, s^2)``. With the canary it follows ``(1 - q) N(0, s^2) + q N(r, s^2)``, where s is the noise multiplier,
q the sampling rate, and r at most 1. The likelihood ratio increases with the answer, so every best test is a threshold
(Neyman and Pearson). The trade-off function of these tests is the claim of the accountant.

Sources: Dong, Roth & Su, *Gaussian differential privacy*, 2022; Nasr et al., *Tight auditing of differentially private
machine learning*, 2023.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri

Array64 = NDArray[np.float64]

_MOST_EPSILON = 2000.0


@dataclass(frozen=True, slots=True)
class AnswerLaw:
    """The law of aligned answers, with and without the canary.

    ``noise`` is the noise multiplier, ``rate`` the sampling rate. ``shift`` is the norm of the canary's contribution in
    clipping norms; the claim is that it is at most 1.

    Raises:
        ValueError: a number is out of range.
    """

    noise: float
    rate: float = 1.0
    shift: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.noise < math.inf and 0 < self.rate <= 1 and 0 < self.shift < math.inf):
            raise ValueError("noise and shift must be positive and finite, and the rate at most 1")

    @property
    def separation(self) -> float:
        """The canary's contribution in standard deviations of the noise: mu of Gaussian differential privacy."""
        return self.shift / self.noise

    def bound_power(self, false_positives: float) -> float:
        """Compute the largest rate of true positives at this rate of false positives."""
        if not 0 < false_positives < 1:
            return float(min(max(false_positives, 0.0), 1.0))
        shifted = float(ndtr(ndtri(false_positives) + self.separation))
        return (1 - self.rate) * false_positives + self.rate * shifted

    def exceed(self, threshold: Any, *, present: bool) -> Any:
        """Compute the probability of an answer above ``threshold``, with or without the canary."""
        absent = ndtr(-np.asarray(threshold) / self.noise)
        if not present:
            return absent
        return (1 - self.rate) * absent + self.rate * ndtr((self.shift - np.asarray(threshold)) / self.noise)

    def compute_log_ratio(self, answers: Any) -> Array64:
        """Compute the log-likelihood ratios of ``answers``: with the canary over without."""
        z = np.asarray(answers, dtype=np.float64) / self.noise
        exponent = self.separation * (z - self.separation / 2)
        if self.rate == 1:
            return np.asarray(exponent)
        return np.asarray(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + exponent))

    def compute_log_density(self, answers: Any, present: Any) -> Array64:
        """Compute log-densities of ``answers``; ``present`` states for each whether the canary was in."""
        z = np.asarray(answers, dtype=np.float64) / self.noise
        absent = -(z**2) / 2 - math.log(self.noise * math.sqrt(2 * math.pi))
        return np.asarray(absent + np.where(present, self.compute_log_ratio(answers), 0.0))

    def find_threshold(self, log_ratio: float) -> float:
        """Find the answer with this log-likelihood ratio; ``-inf`` if all answers have a larger one."""
        if self.rate < 1:
            excess = math.expm1(log_ratio) + self.rate
            if excess <= 0:
                return -math.inf
            log_ratio = math.log(excess / self.rate)
        return self.noise * (log_ratio / self.separation + self.separation / 2)

    def compute_delta(self, epsilon: float) -> float:
        """Compute the least delta at ``epsilon``, the larger of both directions."""
        return max(self._compute_forward(epsilon), self._compute_backward(epsilon))

    def compute_epsilon(self, delta: float) -> float:
        """Compute the least epsilon at ``delta``; 0 if even that has a smaller delta.

        Raises:
            ValueError: for a ``delta`` outside (0, 1).
        """
        if not 0 < delta < 1:
            raise ValueError("delta must be greater than 0 and less than 1")
        if self.compute_delta(0.0) <= delta:
            return 0.0
        highest = 1.0
        while self.compute_delta(highest) > delta and highest < _MOST_EPSILON:
            highest *= 2
        return float(
            scipy.optimize.brentq(
                lambda epsilon: self.compute_delta(epsilon) - delta, 0.0, highest, xtol=1e-13, rtol=1e-13
            )
        )

    def _compute_forward(self, epsilon: float) -> float:
        """Compute the hockey-stick divergence of the law with the canary."""
        inner = math.expm1(min(epsilon, 700.0)) + self.rate
        log_odds = epsilon - math.log(self.rate) if epsilon > 700 else math.log(inner / self.rate)
        return self.rate * _compute_gaussian_delta(self.separation, log_odds)

    def _compute_backward(self, epsilon: float) -> float:
        threshold = self.find_threshold(-epsilon)
        if threshold == -math.inf:
            return 0.0
        z = threshold / self.noise
        present = (1 - self.rate) * float(ndtr(z)) + self.rate * float(ndtr(z - self.separation))
        return max(0.0, float(ndtr(z)) - math.exp(epsilon) * present) if present > 0 else 0.0


def _compute_gaussian_delta(separation: float, epsilon: float) -> float:
    """Compute ``Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2)`` without cancellation of huge factors."""
    near, far = separation / 2 - epsilon / separation, -separation / 2 - epsilon / separation
    return max(0.0, float(ndtr(near) - math.exp(min(0.0, epsilon + float(log_ndtr(far))))))
