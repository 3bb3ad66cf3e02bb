"""What a single Gaussian release of the whole budget could reach if it knew the posterior beforehand.

One sum of scores of a logistic regression, asked at the full posterior's own mode and in its own metric (``H = L L'``,
``W = L^-1``), each bounded to norm C by a weight ``w(x)`` that leaves it conditionally unbiased, and one Newton step
with the weighted information ``J``. With ``I_k = W (sum_n w^k v x x') W'``, ``v = p (1 - p)``, the expected KL has two
parts: that of the noise, ``(sigma C)^2 tr(J^-2) / 2`` with ``J = I_1 +`` prior, and what the weights lose, which is the
variance of the weighted score given that the full one vanishes, ``tr(J^-1 (I_2 - I_1 I_0^-1 I_1) J^-1) / 2``. The best
C is taken, and the curvature is free: no method can know either.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from app.inference.protocol import Array64
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent
from benchmarks.cases import Case, design_rows

CLIPS: Final = np.geomspace(0.02, 1000, 20)
"""Squared, over the share D / slots of a row."""


def one_shot_noise(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian mechanism that costs ``epsilon``."""
    return calibrate(lambda noise: (GaussianEvent(noise),), epsilon, delta)


def noise_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """Expected KL in nats for each epsilon, at ``delta = 1 / slots``."""
    exact, slots = case.exact, case.facts.slots
    assert exact is not None
    x, _ = design_rows(case)
    white, p = solve_triangular(exact.factor, x.T, lower=True).T, expit(x @ exact.mean)
    inverse = solve_triangular(exact.factor, np.eye(len(exact.mean)), lower=True)
    prior = inverse @ case.problem.prior.precision(exact.mean) @ inverse.T
    clips = np.sqrt(CLIPS * len(exact.mean) / slots)
    noise, lost = np.array([_parts(white, p, prior, clip) for clip in clips]).T
    sigmas = np.array([one_shot_noise(epsilon, 1 / slots) for epsilon in epsilons])
    return np.asarray((np.outer(sigmas**2, noise) + lost).min(axis=1))


def _parts(white: Array64, p: Array64, prior: Array64, clip: float) -> tuple[float, float]:
    """The noise's part at a noise multiplier of one, and what the weights lose."""
    weight = np.minimum(1, clip / (np.maximum(p, 1 - p) * np.sqrt(np.vecdot(white, white))))
    full, first, second = ((white * (weight**k * p * (1 - p))[:, None]).T @ white for k in range(3))
    bent = np.linalg.inv(first + prior)
    left = second - first @ np.linalg.pinv(full, hermitian=True) @ first
    return 0.5 * clip**2 * float(np.sum(bent**2)), 0.5 * float(np.sum((bent @ left) * bent))
