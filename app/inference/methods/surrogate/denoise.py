"""What a noised information matrix tells, in the metric of the belief that it is to correct.

With ``W H W' = I`` for the belief H, the answer is ``Y = B + noise``, and B would be the identity (less the prior's
part) if the belief were right. What is unlikely to be noise is kept: James-Stein shrinkage of the deviation towards
zero, apart for directions in which the information is known to change (James & Stein 1961), and for the rest of
the spectrum eigenvalues beyond the noise's own, whose edge is that of the semicircle law (Wigner 1955).
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.methods.surrogate.matrices import symmetric

_LEAST_LEVEL = 0.3
"""Of what is expected, that an answer is at least, whatever noise makes of it."""
_OF_EDGE = 0.25
"""The share of the bulk's edge that an eigenvalue keeps at least, where the bulk's deviation is kept."""
_OF_NOISE, _LEAST_FLOOR, _MOST_FLOOR = 1.5, 0.1, 0.5
"""Times its noise that no eigenvalue is lowered below, within limits."""
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Denoised:
    """``matrix`` ``(D, D)``, positive definite; ``kept`` the share of the bulk's deviation that was kept."""

    matrix: Array64
    kept: float


def denoised(
    answer: Array64,
    centre: Array64,
    directions: Array64,
    noise: float,
    *,
    most: float = np.inf,
    wider: Array64 | None = None,
) -> Denoised:
    """The information in the metric, ``(D, D)``, from ``answer`` with noise of standard deviation ``noise``.

    ``centre`` ``(D, D)`` is what is expected up to a factor, ``directions`` ``(D, k)`` are those that are expected to
    change. The noise off the diagonal is sqrt(2) smaller. No eigenvalue is above ``most``, and none so far below 1 that
    noise alone may be why; of ``wider found wider'`` ``(D, D)``, where the metric is wider than a belief's.
    """
    level = level_of(answer, centre)
    deviation, kept, known = _shrunk(answer - level * centre, directions, noise)
    back = np.eye(len(answer)) if wider is None else wider
    values, vectors = np.linalg.eigh(symmetric(back @ (level * centre + deviation) @ back.T))
    edge = noise * np.sqrt(2.0 * len(answer))
    least = np.clip(_OF_NOISE * noise, _LEAST_FLOOR, _MOST_FLOOR)
    floor = np.clip(max(_OF_EDGE * kept * edge, known * noise), least, 1.0)
    narrow = np.linalg.solve(back, vectors)
    bounded = np.clip(values, floor, max(most * np.linalg.norm(back, 2) ** 2, floor))
    return Denoised((narrow * bounded) @ narrow.T, kept)


def level_of(answer: Array64, centre: Array64) -> float:
    """The factor by which ``answer`` ``(D, D)`` is ``centre``, by least squares."""
    return max(float(np.vdot(answer, centre)) / max(float(np.vdot(centre, centre)), _TINY), _LEAST_LEVEL)


def _shrunk(deviation: Array64, directions: Array64, noise: float) -> tuple[Array64, float, float]:
    size = len(deviation)
    basis, triangle, _ = scipy.linalg.qr(directions, pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    k = int(np.sum(diagonal > 1e-6 * max(diagonal[0], _TINY))) if np.any(directions) else 0
    turned = basis.T @ deviation @ basis
    known = _james_stein(turned[:k, :k], noise**2 * k * (k + 1) / 2) if k else 0.0
    cross = turned[:k, k:] * (_james_stein(turned[:k, k:], noise**2 * k * (size - k) / 2) if k else 1.0)
    rest, kept = _bulk(turned[k:, k:], noise)
    return basis @ np.block([[known * turned[:k, :k], cross], [cross.T, rest]]) @ basis.T, kept, known


def _bulk(deviation: Array64, noise: float) -> tuple[Array64, float]:
    """James-Stein for the whole, but eigenvalues beyond the edge keep ``sqrt(y^2 - edge^2)`` at least."""
    size = len(deviation)
    if not size:
        return deviation, 0.0
    kept = _james_stein(deviation, noise**2 * size * (size + 1) / 2)
    values, vectors = np.linalg.eigh(deviation)
    beyond = np.sqrt(np.maximum(values**2 - 2 * size * noise**2, 0))
    return (vectors * (np.sign(values) * np.maximum(kept * np.abs(values), beyond))) @ vectors.T, kept


def _james_stein(matrix: Array64, expected: float) -> float:
    """The factor that what ``expected`` squared noise leaves of the matrix's squared norm."""
    return max(0.0, 1 - expected / max(float(np.sum(matrix**2)), _TINY))
