"""A noised information matrix, and what it makes of a belief."""

from dataclasses import dataclass, replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.denoise import denoised
from app.inference.methods.surrogate.matrices import Metric, symmetric


@dataclass(frozen=True, slots=True)
class Answer:
    """A noised matrix ``(D, D)``, in a ``metric``, with noise of a standard deviation.

    ``prior`` ``(D, D)`` is the prior's part of beliefs, which answers lack; ``changing`` ``(D, k)`` are directions
    along which the information is expected to change; no eigenvalue is above ``most``. The metric may be ``wider``
    ``(D, D)`` than that of a belief (:mod:`app.inference.methods.surrogate.matrix_metric`).
    """

    matrix: Array64
    metric: Metric
    noise: float
    prior: Array64
    changing: Array64
    most: float
    wider: Array64 | None = None

    def corrects(self, belief: Array64) -> Array64:
        """``belief`` ``(D, D)``, prior included, by what is unlikely to be noise."""
        directions = self.metric.factor.T @ self.changing
        found = denoised(self.matrix, self.expected(belief), directions, self.noise, most=self.most, wider=self.wider)
        return symmetric(self.metric.factor @ found.matrix @ self.metric.factor.T) + self.prior

    def expected(self, belief: Array64) -> Array64:
        """What it would be without noise."""
        return np.asarray(self.metric.whitening @ (belief - self.prior) @ self.metric.whitening.T)

    def seen_in(self, other: Metric) -> "Answer":
        """The same in another metric, its noise as large as on average over directions."""
        turn = other.whitening @ self.metric.factor
        noise = self.noise * float(np.vdot(turn, turn)) / len(turn)
        return replace(self, matrix=turn @ self.matrix @ turn.T, metric=other, noise=noise, wider=None)
