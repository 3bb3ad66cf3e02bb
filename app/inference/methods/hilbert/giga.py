"""Greedy iterative geodesic ascent (Campbell & Broderick, ICML 2018, Algorithm 2; thesis, section 2.5.2).

On the unit sphere, the current direction ``a`` of the weighted sum moves towards that of the total, ``l``, along the
geodesic through the vector whose geodesic sets out closest to it: ``argmax_n <l - <l,a>a, v_n - <v_n,a>a>``, both
normalised. The best scale comes last, so that the error ``|L| sqrt(1 - <l,a>^2)`` never grows.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.hilbert.vectors import Selection, VectorSum, collect

_PARALLEL = 1e-6
"""Vectors whose squared sine to the current direction is below have no geodesic of their own."""


def giga(vectors: VectorSum, size: int) -> Selection:
    """At most ``size`` rows, one step for each."""
    length = float(np.linalg.norm(vectors.total))
    if length == 0:
        return collect({})
    target = vectors.total / length
    weights: dict[int, float] = {}
    current = np.zeros_like(target)
    for _ in range(size):
        index = _closest(vectors, target, current)
        step = 0.0 if index is None else _step(target, current, vectors.direction(index))
        if index is None or step <= 0:
            break
        mixed = (1 - step) * current + step * vectors.direction(index)
        norm = float(np.linalg.norm(mixed))
        weights = {row: weight * (1 - step) / norm for row, weight in weights.items()}
        weights[index] = weights.get(index, 0.0) + step / norm
        current = mixed / norm
    scale = length * max(0.0, float(target @ current))
    return collect({row: scale * weight / float(vectors.lengths[row]) for row, weight in weights.items()})


def _closest(vectors: VectorSum, target: Array64, current: Array64) -> int | None:
    """The row whose geodesic from ``current`` is closest in direction to that of ``target``; None if none is."""
    tangent = target - (target @ current) * current
    both = np.stack((tangent, current), axis=1).astype(np.float32)
    along, cosine = (vectors.directions @ both).T
    sine = 1 - np.square(cosine)
    along[sine < _PARALLEL] = -np.inf
    along /= np.sqrt(np.maximum(sine, _PARALLEL))
    index = int(np.argmax(along))
    return index if along[index] > 0 else None


def _step(target: Array64, current: Array64, chosen: Array64) -> float:
    """How far to go on the chord from ``current`` to ``chosen`` to be closest to ``target``, in [0, 1]."""
    if not np.any(current):
        return 1.0
    to_chosen, to_current, between = target @ chosen, target @ current, chosen @ current
    towards, back = to_chosen - to_current * between, to_current - to_chosen * between
    return float(np.clip(towards / (towards + back), 0, 1)) if towards > 0 and towards + back > 0 else 0.0
