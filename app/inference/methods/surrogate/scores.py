"""From noised scores at several parameters to the posterior's mode.

Each score says where it believes the mode: ``o_k = theta_k + H^-1 g_k``, with g the gradient of the log posterior and
H the mean of the informations at theta_k and now (the trapezoid rule along the way). Noise aside it is wrong by a share
of its distance to the mode, since neither the information nor its change are known well; and scores from the same side
are wrong alike. So errors are linear in the distance, with a random matrix whose size the answers themselves tell
(restricted maximum likelihood): two scores at distances d_k, d_l have errors of covariance ``share d_k'H d_l / D`` in
every direction. The best linear unbiased average follows; where errors stand out of the noise, it extrapolates. What
is left is shrunk towards the prior's mean where noise exceeds what there is to see.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.methods.surrogate.population import Population

_SWEEPS = 5
_SHARES = np.geomspace(0.003, 1.5, 10)
"""Candidates for the mean square of a score's error over that of its distance."""
_ERROR_BY_SPREAD = 0.3
_OF_DISAGREEMENT = 0.3
_JITTER = 1e-9


@dataclass(frozen=True, slots=True)
class Score:
    """A noised gradient ``(D,)`` of the log posterior at ``theta``, where the belief was ``information`` ``(D, D)``.

    ``variance`` is that of its noise in a direction of the information's metric, on average, and ``kept`` the share of
    the information that bounds left to it. ``shape`` ``(D, D)``, times the variance, is the gradient's noise: the
    information, None, where directions are alike.
    """

    theta: Array64
    gradient: Array64
    variance: float
    information: Array64
    kept: float = 1.0
    shape: Array64 | None = None


@dataclass(frozen=True, slots=True)
class Mode:
    """``mean`` ``(D,)`` with noise of ``variance`` in a direction of the information's metric, before shrinkage.

    ``kept`` ``(D, D)`` is the shrinkage, and ``newest`` the share of the last score in the average; ``shape`` is that
    of the scores' noise.
    """

    mean: Array64
    variance: float
    kept: Array64
    newest: float
    shape: Array64 | None = None


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
    said = np.array([mode_of(score, information) for score in scores])
    if newest is not None:
        said[-1] = newest
    variance = np.array([score.variance for score in scores])
    disputed = _OF_DISAGREEMENT * np.array([_disagreement(score, information) for score in scores]) / len(information)
    metric, thetas = np.linalg.cholesky(information), np.array([score.theta for score in scores])
    centre = said[-1]
    for _ in range(_SWEEPS):
        away = centre - thetas
        spread = np.array([population.spread(step, blocks) for step in away]) ** 2
        alike = (away @ metric) @ (away @ metric).T / len(information)
        own = variance + disputed + _ERROR_BY_SPREAD * spread * alike.diagonal()
        weights = _weights(said @ metric, own, alike)
        centre = weights @ said
    total, shape = float(weights**2 @ variance), _shape(scores, weights)
    kept = _shrinkage(centre, information, prior, total, information if shape is None else shape)
    return Mode(kept @ centre, total, kept, float(weights[-1]), shape)


def _shape(scores: Sequence[Score], weights: Array64) -> Array64 | None:
    """That of the noise in an average; None where no score has one of its own."""
    if all(score.shape is None for score in scores):
        return None
    each = weights**2 * [score.variance for score in scores]
    shapes = [score.information if score.shape is None else score.shape for score in scores]
    return np.asarray(np.tensordot(each, shapes, axes=1) / each.sum())


def _weights(said: Array64, own: Array64, alike: Array64) -> Array64:
    """Of the average of ``said`` ``(k, D)``, whose rows have errors of covariance ``diag(own) + share alike``.

    The share is the likeliest one of :data:`_SHARES`, whatever the mean of the rows is.
    """
    best, found = -np.inf, np.eye(len(own))[-1]
    for share in _SHARES:
        covariance = np.diag(own) + share * alike
        scale = np.sqrt(covariance.diagonal())
        correlation = covariance / np.outer(scale, scale) + _JITTER * np.eye(len(own))
        if not np.all(np.isfinite(correlation)):
            break
        factor = np.linalg.cholesky(correlation)
        ones, rows = (
            scipy.linalg.solve_triangular(factor, each, lower=True) for each in (1 / scale, said / scale[:, None])
        )
        precision = float(ones @ ones)
        mean = ones @ rows / precision
        logs = np.log(factor.diagonal() * scale).sum() + 0.5 * np.log(precision)
        likelihood = -said.shape[1] * logs - 0.5 * float(np.sum((rows - np.outer(ones, mean)) ** 2))
        if likelihood > best:
            best = likelihood
            found = scipy.linalg.solve_triangular(factor, ones, lower=True, trans="T") / scale / precision
    return np.asarray(found)


def newton(score: Score, information: Array64) -> Array64:
    """The step ``(D,)`` that a score alone would take."""
    return np.asarray(np.linalg.solve(0.5 * (information + score.information), score.gradient))


def mode_of(score: Score, information: Array64) -> Array64:
    """Where a score alone believes the mode, ``(D,)``."""
    return score.theta + newton(score, information)


def _disagreement(score: Score, information: Array64) -> float:
    """The squared distance between the steps by either information."""
    difference = np.linalg.solve(score.information, score.gradient) - np.linalg.solve(information, score.gradient)
    return float(difference @ information @ difference)


def _shrinkage(centre: Array64, information: Array64, prior: Array64, variance: float, shape: Array64) -> Array64:
    """``(D, D)``: what to keep of each direction that prior and information agree on.

    In units of the prior, a direction of information h (prior included) is seen with noise ``variance / (h - 1)``, and
    the more so as its part of the noise's ``shape`` is larger than h; its signal is what is there beyond the noise, but
    at least the prior's own.
    """
    factor = np.linalg.cholesky(prior)
    inverse = np.linalg.inv(factor)
    values, vectors = np.linalg.eigh(inverse @ information @ inverse.T)
    seen = np.maximum(values - 1, 0)
    along = vectors.T @ (factor.T @ centre)
    noise = variance * np.vecdot(vectors.T @ inverse @ shape @ inverse.T, vectors.T) / values
    signal = np.maximum(1.0, along**2 - noise / np.maximum(seen, 1e-9))
    kept = seen * signal / (seen * signal + noise + 1e-12)
    return np.asarray(inverse.T @ (vectors * kept) @ vectors.T @ factor.T)
