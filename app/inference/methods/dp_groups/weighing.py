"""Weights of groups from noised sums of centred potentials.

With ``A_g`` ``(S,)`` the sum over group g, the weights minimise ``|sum_g A_g - sum_g w_g A_g|`` over non-negative
weights of at most M groups (thesis, section 5.2.2.2). This depends on the products ``A_g . A_h`` alone. In the products
of the noised sums, noise of variance v adds ``(S - 1) v`` to the diagonal, and nothing on average elsewhere. This is
subtracted, and the matrix is projected to the nearest one without negative eigenvalues. Only groups whose answer is
above its noise have a weight: a large weight of a small group would be chance.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.hilbert.omp import omp
from app.inference.methods.hilbert.vectors import sum_vectors

CERTAIN: Final = 4.0
"""An answer is above its noise if its squared length exceeds the expected one by as many standard deviations."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """Weights and further figures, as in :class:`app.inference.core.release.GroupWeights`.

    ``explained`` is the share of the squared length of the sum over all groups that the weighted groups explain.
    ``signal`` is the length of this sum without noise, divided by that of its noise.
    """

    weight: Array64
    strength: Array64
    agreement: Array64
    above_noise: Array64
    explained: float
    signal: float


def weigh_groups(answers: Array64, noise: float, size: int) -> Weighing:
    """Weigh at most ``size`` groups by ``answers`` ``(G, S)``; ``noise`` is the standard deviation of each value."""
    groups, freedom = len(answers), answers.shape[1] - 1
    centred = answers - answers.mean(axis=1, keepdims=True)
    scale = max(float(np.abs(centred).max()), noise)
    products = (centred / scale) @ (centred / scale).T
    variance = (noise / scale) ** 2
    gram = products - freedom * variance * np.eye(groups)
    vectors = _factorise(gram)
    longest = max(float(np.linalg.norm(vectors, axis=1).max()), np.finfo(np.float64).tiny)
    is_above = products.diagonal() > variance * compute_longest(freedom)
    total = vectors.sum(axis=0)
    weight = np.zeros(groups)
    if np.any(is_above):
        candidates = sum_vectors((vectors[is_above] / longest).astype(np.float32))
        chosen = omp(replace(candidates, total=total / longest), min(size, groups))
        weight[np.flatnonzero(is_above)[chosen.indices]] = chosen.weights
    energy = float(total @ total)
    left = total - weight @ vectors
    of_noise = groups * freedom * variance
    return Weighing(
        weight=weight,
        strength=scale * np.sqrt(np.maximum(gram.diagonal(), 0) / answers.shape[1]),
        agreement=_correlate_with_others(gram),
        above_noise=is_above.astype(np.float64),
        explained=1 - float(left @ left) / energy if energy else 0.0,
        signal=math.sqrt(max(float(gram.sum()), 0.0) / of_noise) if of_noise else math.inf,
    )


def compute_longest(freedom: int) -> float:
    """Compute the squared length that noise of variance 1 in ``freedom`` dimensions hardly exceeds."""
    return freedom + CERTAIN * math.sqrt(2 * freedom) + CERTAIN**2


def _factorise(gram: Array64) -> Array64:
    """Factorise ``gram`` without its negative eigenvalues into vectors ``(G, r)``."""
    values, vectors = np.linalg.eigh(gram)
    is_positive = values > 0
    if not np.any(is_positive):
        return np.zeros((len(gram), 1))
    return np.asarray(vectors[:, is_positive] * np.sqrt(values[is_positive]))


def _correlate_with_others(gram: Array64) -> Array64:
    """Correlate each group's sum with the sum over the others; 0 where noise leaves no length."""
    own, rows = gram.diagonal(), gram.sum(axis=1)
    others = gram.sum() - 2 * rows + own
    lengths = np.sqrt(np.maximum(own, 0) * np.maximum(others, 0))
    return np.asarray(np.clip(np.divide(rows - own, lengths, out=np.zeros(len(gram)), where=lengths > 0), -1, 1))
