"""From noised scores at several parameters to the posterior's mode.

Each score says where it believes the mode: ``o_k = theta_k + H^-1 g_k``, with g the gradient of the log posterior and
H the mean of the informations at theta_k and now (the trapezoid rule along the way). They are averaged by how far off
each may be: its noise, what the two informations disagree about, and a share of its distance that grows with the
distance. What is left is shrunk towards the prior's mean where noise exceeds what there is to see.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.inference.protocol import Array64
from app.inference.surrogate.population import Population

_SWEEPS = 3
_RELATIVE_ERROR = 0.1
_ERROR_BY_SPREAD = 0.3


@dataclass(frozen=True, slots=True)
class Score:
    """A noised gradient ``(D,)`` of the log posterior at ``theta``, where the belief was ``information`` ``(D, D)``.

    ``variance`` is that of its noise in every direction of the information's metric.
    """

    theta: Array64
    gradient: Array64
    variance: float
    information: Array64


@dataclass(frozen=True, slots=True)
class Mode:
    """``mean`` ``(D,)`` with noise of ``variance`` in every direction of the information's metric, before shrinkage.

    ``kept`` ``(D, D)`` is the shrinkage, and ``newest`` the share of the last score in the average.
    """

    mean: Array64
    variance: float
    kept: Array64
    newest: float


def combined(
    scores: Sequence[Score],
    information: Array64,
    prior: Array64,
    population: Population,
    blocks: int,
    *,
    newest: Array64 | None = None,
) -> Mode:
    """The mode that all ``scores`` speak for. ``newest`` replaces what the last of them says, ``(D,)``."""
    said = np.array([_mode_of(score, information) for score in scores])
    if newest is not None:
        said[-1] = newest
    disagreement = np.array([_disagreement(score, information) for score in scores])
    variance = np.array([score.variance for score in scores])
    centre = said[-1]
    for _ in range(_SWEEPS):
        away = centre - np.array([score.theta for score in scores])
        squared = np.einsum("ij,jk,ik->i", away, information, away)
        spread = np.array([population.spread(step, blocks) for step in away]) ** 2
        errors = disagreement + (_RELATIVE_ERROR + _ERROR_BY_SPREAD * spread) * squared
        weights = 1 / (len(centre) * variance + errors)
        weights /= weights.sum()
        centre = weights @ said
    total = float(weights**2 @ variance)
    kept = _shrinkage(centre, information, prior, total)
    return Mode(kept @ centre, total, kept, float(weights[-1]))


def newton(score: Score, information: Array64) -> Array64:
    """The step ``(D,)`` that a score alone would take."""
    return np.asarray(np.linalg.solve(0.5 * (information + score.information), score.gradient))


def _mode_of(score: Score, information: Array64) -> Array64:
    return score.theta + newton(score, information)


def _disagreement(score: Score, information: Array64) -> float:
    """The squared distance between the steps by either information."""
    difference = np.linalg.solve(score.information, score.gradient) - np.linalg.solve(information, score.gradient)
    return float(difference @ information @ difference)


def _shrinkage(centre: Array64, information: Array64, prior: Array64, variance: float) -> Array64:
    """``(D, D)``: what to keep of each direction that prior and information agree on.

    In units of the prior, a direction of information h (prior included) is seen with noise ``variance / (h - 1)``; its
    signal is what is there beyond the noise, but at least the prior's own.
    """
    factor = np.linalg.cholesky(prior)
    inverse = np.linalg.inv(factor)
    values, vectors = np.linalg.eigh(inverse @ information @ inverse.T)
    seen = np.maximum(values - 1, 0)
    along = vectors.T @ (factor.T @ centre)
    signal = np.maximum(1.0, along**2 - variance / np.maximum(seen, 1e-9))
    kept = seen * signal / (seen * signal + variance + 1e-12)
    return np.asarray(inverse.T @ (vectors * kept) @ vectors.T @ factor.T)
