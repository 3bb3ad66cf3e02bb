"""What weighted points leave unexplained: covariances with ``R = sum_n f(x_n, .) - sum_m w_m f(u_m, .)``.

All are under the posterior of the weighted points. The gradients of ``KL(pi_{u,w} || pi)`` are ``-Cov[f(u_m), R]`` in
the weights and ``-w_m Cov[grad_u f(u_m), R]`` in the points (Bayesian Pseudocoresets, 2020, Eq. 5), and greedy methods
add the row with the largest correlation ``Cov[f_n, R] / sd[f_n]`` (thesis, Eq. 5.8; the sd of R is common to all).
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
        """``Cov[f(u_m), R]`` of the points themselves, ``(M,)``."""

    def correlation(self, x: Array64, y: Array64) -> Array64:
        """``Cov[f, R] / sd[f]`` of other rows, ``(n,)``; zero where ``f`` does not vary."""

    def moves(self, u: Array64, y: Array64) -> tuple[Array64, Array64 | None]:
        """``Cov[grad f, R]`` in design rows ``(n, p)`` and targets ``(n,)``; the latter None if targets stay."""


class Residuals(Protocol):
    """A posterior family and the data: makes residuals.

    ``starting_share`` says with which share of the data's weight the points of an optimisation best start.
    """

    @property
    def starting_share(self) -> float:
        """1 where every gradient is exact."""

    def at(self, points: Points) -> Residual:
        """For the gradients at ``points``: exact, or on a fresh minibatch and fresh draws."""

    def on(self, points: Points, x: Array64, y: Array64) -> Residual:
        """For choosing among the rows ``x, y``: those stand for the data wherever the data are not summed exactly."""


def standardise(covariance: Array64, variance: Array64) -> Array64:
    """``covariance / sqrt(variance)``, zero where there is no variance."""
    varies = variance > 0
    covariance = covariance * varies
    covariance[varies] /= variance[varies] ** 0.5
    return covariance
