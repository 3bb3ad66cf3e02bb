"""Covariances with the residual ``R = sum_n f(x_n, .) - sum_m w_m f(u_m, .)``.

They are under the posterior of the weighted points. The gradients of ``KL(pi_{u,w} || pi)`` are ``-Cov[f(u_m), R]`` in
the weights and ``-w_m Cov[grad_u f(u_m), R]`` in the points (Bayesian Pseudocoresets, 2020, Eq. 5). Greedy methods add
the row with the largest correlation ``Cov[f_n, R] / sd[f_n]`` (thesis, Eq. 5.8; the sd of R is the same for all).
"""

from dataclasses import dataclass
from typing import Protocol

from app.inference.core.model import Array64


@dataclass(frozen=True, slots=True)
class Points:
    """Design rows ``u`` (M, p), targets ``y`` (M,) and non-negative ``weights`` (M,)."""

    u: Array64
    y: Array64
    weights: Array64


class Residual(Protocol):
    """The covariances with R at one set of weighted points."""

    @property
    def own(self) -> Array64:
        """``Cov[f(u_m), R]`` of the points, ``(M,)``."""

    def correlation(self, x: Array64, y: Array64) -> Array64:
        """Compute ``Cov[f, R] / sd[f]`` of other rows, ``(n,)``; zero where ``f`` is constant."""

    def moves(self, u: Array64, y: Array64) -> tuple[Array64, Array64 | None]:
        """Compute ``Cov[grad f, R]`` in design rows ``(n, p)`` and targets ``(n,)``.

        The latter is None if targets stay fixed.
        """


class Residuals(Protocol):
    """A model and its data; makes residuals."""

    @property
    def starting_share(self) -> float:
        """The share of the data's weight with which points best start; 1 if gradients are exact."""

    def at(self, points: Points) -> Residual:
        """Make the residual for gradients at ``points``: exact, or on a new minibatch and new draws."""

    def on(self, points: Points, x: Array64, y: Array64) -> Residual:
        """Make the residual for a choice among the rows ``x, y``.

        These rows represent the data if the data are not summed exactly.
        """


def standardise(covariance: Array64, variance: Array64) -> Array64:
    """Compute ``covariance / sqrt(variance)``; zero where the variance is zero."""
    varies = variance > 0
    covariance = covariance * varies
    covariance[varies] /= variance[varies] ** 0.5
    return covariance
