"""What a single Gaussian release of the whole budget could reach if it knew the posterior beforehand.

One sum of scores of a logistic regression, asked at the full posterior's own mode and in its own metric (``H = L L'``,
``W = L^-1``), each bounded to norm C by a weight ``w(x)`` that leaves it conditionally unbiased, and one Newton step
with the weighted information ``J``. With ``I_k = W (sum_n w^k v x x') W'``, ``v = p (1 - p)``, the expected KL has two
parts: that of the noise, ``(sigma C)^2 tr(J^-2) / 2`` with ``J = I_1 +`` prior, and what the weights lose, which is the
variance of the weighted score given that the full one vanishes, ``tr(J^-1 (I_2 - I_1 I_0^-1 I_1) J^-1) / 2``. The best
C is taken, and the curvature is free: no method can know either.

That is an expectation over labels that follow the model. :func:`table_floors` is the second reference: what one release
would do to *these* rows. Bounding then moves the mode by a step that is no chance any more, ``J^-1 g`` with g the
bounded score at the exact mode, and where labels are no logistic regression it is far from what the model expects. The
best of a few bounds is taken, with the same weight or by clipping each row's score.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from app.inference.core.model import Array64
from app.privacy.calibration import calibrate
from app.privacy.events import GaussianEvent
from benchmarks.cases import Case, design_rows
from benchmarks.records import REFERENCE, Record

CLIPS: Final = np.geomspace(0.02, 1000, 20)
"""Squared, over the share D / slots of a row."""
TABLE_CLIPS: Final = (0.3, 0.5, 1, 2, 3, 4, 6, 8, 12, 20, 40, 100, 400, 2000)
"""The same, for what is released of a given table: up to where, at ε = 1, nothing is clipped that noise would allow."""


EXPECTED: Final = "one-shot noise floor"
OF_ROWS: Final = "floor of these rows"
"""What the two references are called."""


def references(
    case: Case, size: int, epsilons: Sequence[float], found: Mapping[str, Sequence[float] | Array64]
) -> Iterator[Record]:
    """A record for each label of ``found`` and its KL in nats at each epsilon, beside runs with ``size`` points."""
    rows, dimension = case.facts.slots, case.problem.model.dimension
    for label, values in found.items():
        for epsilon, kl in zip(epsilons, values, strict=True):
            yield Record(case.name, label, rows, dimension, size, epsilon, kl=float(kl), outcome=REFERENCE)


def one_shot_noise(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian mechanism that costs ``epsilon``."""
    return calibrate(lambda noise: (GaussianEvent(noise),), epsilon, delta)


class AtMode(NamedTuple):
    """Rows ``white`` ``(n, D)`` in the posterior's metric, chances ``p`` ``(n,)`` of their labels ``y`` ``(n,)``.

    ``prior`` ``(D, D)`` is its precision there, ``pull`` ``(D,)`` its gradient.
    """

    white: Array64
    p: Array64
    y: Array64
    prior: Array64
    pull: Array64


def noise_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """Expected KL in nats for each epsilon, at ``delta = 1 / slots``."""
    at = at_mode(case)
    return _best(case, epsilons, [_parts(at.white, at.p, at.prior, clip) for clip in _clips(case, CLIPS)])


def table_floors(case: Case, epsilons: Sequence[float]) -> Array64:
    """KL in nats of one release of these rows at their own mode, expected over noise alone, for each epsilon."""
    at, clips = at_mode(case), _clips(case, np.array(TABLE_CLIPS))
    return _best(case, epsilons, [way(at, clip) for way in (_weigh, _clip) for clip in clips])


def at_mode(case: Case) -> AtMode:
    """The table as its own posterior sees it."""
    exact = case.exact
    assert exact is not None
    x, y = design_rows(case)
    white, p = solve_triangular(exact.factor, x.T, lower=True).T, expit(x @ exact.mean)
    inverse, prior = solve_triangular(exact.factor, np.eye(len(exact.mean)), lower=True), case.problem.prior
    return AtMode(white, p, y, inverse @ prior.precision(exact.mean) @ inverse.T, inverse @ prior.gradient(exact.mean))


def _clips(case: Case, squares: Array64) -> Array64:
    return np.asarray(np.sqrt(squares * case.problem.model.dimension / case.facts.slots))


def _best(case: Case, epsilons: Sequence[float], ways: Sequence[tuple[float, float]]) -> Array64:
    noise, lost = np.array(ways).T
    sigmas = np.array([one_shot_noise(epsilon, 1 / case.facts.slots) for epsilon in epsilons])
    return np.asarray((np.outer(sigmas**2, noise) + lost).min(axis=1))


def _weights(white: Array64, p: Array64, clip: float) -> Array64:
    """``(n,)``: by which either label's score is at most ``clip`` long."""
    return np.asarray(np.minimum(1, clip / (np.maximum(p, 1 - p) * np.sqrt(np.vecdot(white, white)))))


def _parts(white: Array64, p: Array64, prior: Array64, clip: float) -> tuple[float, float]:
    """The noise's part at a noise multiplier of one, and what the weights lose."""
    weight = _weights(white, p, clip)
    full, first, second = ((white * (weight**k * p * (1 - p))[:, None]).T @ white for k in range(3))
    bent = np.linalg.inv(first + prior)
    left = second - first @ np.linalg.pinv(full, hermitian=True) @ first
    return 0.5 * clip**2 * float(np.sum(bent**2)), 0.5 * float(np.sum((bent @ left) * bent))


def _weigh(at: AtMode, clip: float) -> tuple[float, float]:
    """The noise's part at a noise multiplier of one, and that of the step which bounding alone makes."""
    white, p, y, prior, pull = at
    weight = _weights(white, p, clip)
    bent = np.linalg.inv((white * (weight * p * (1 - p))[:, None]).T @ white + prior)
    step = bent @ (white.T @ (weight * (y - p)) + pull)
    return 0.5 * clip**2 * float(np.sum(bent**2)), 0.5 * float(step @ step)


def _clip(at: AtMode, clip: float) -> tuple[float, float]:
    """The same, for scores clipped whatever their label is, and the full information."""
    white, p, y, prior, pull = at
    length = np.abs(y - p) * np.sqrt(np.vecdot(white, white))
    step = white.T @ (np.minimum(1, clip / np.maximum(length, np.finfo(float).tiny)) * (y - p)) + pull
    return 0.5 * clip**2 * len(prior), 0.5 * float(step @ step)
