"""Greedy iterative geodesic ascent (GIGA).

On the unit sphere, the direction ``a`` of the weighted sum moves along geodesics towards the direction ``l`` of the
total. Each step takes the vector whose geodesic has the smallest angle to that of ``l``: ``argmax_n <l - <l,a>a, v_n -
<v_n,a>a>``, both normalised. The best scale is computed at the end, so the error ``|L| sqrt(1 - <l,a>^2)`` never grows.
Sources: Campbell & Broderick, ICML 2018, Algorithm 2; thesis, section 2.5.2.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.hilbert.vectors import VectorSum, collect
from app.inference.methods.public_table import Selection

_PARALLEL = 1e-6
"""Vectors with a smaller squared sine to the current direction count as parallel to it."""


def giga(vectors: VectorSum, size: int) -> Selection:
    """Select at most ``size`` rows, one step for each."""
    length = float(np.linalg.norm(vectors.total))
    if length == 0:
        return collect({})
    target = vectors.total / length
    weights: dict[int, float] = {}
    current = np.zeros_like(target)
    for _ in range(size):
        index = _find_closest(vectors, target, current)
        step = 0.0 if index is None else _compute_step(target, current, vectors.direction(index))
        if index is None or step <= 0:
            break
        mixed = (1 - step) * current + step * vectors.direction(index)
        norm = float(np.linalg.norm(mixed))
        weights = {row: weight * (1 - step) / norm for row, weight in weights.items()}
        weights[index] = weights.get(index, 0.0) + step / norm
        current = mixed / norm
    scale = length * max(0.0, float(target @ current))
    return collect({row: scale * weight / float(vectors.lengths[row]) for row, weight in weights.items()})


def _find_closest(vectors: VectorSum, target: Array64, current: Array64) -> int | None:
    """Find the row whose geodesic from ``current`` is closest to that of ``target``.

    Returns None if every angle is 90 degrees or more.
    """
    tangent = target - (target @ current) * current
    along, cosine = vectors.align(np.stack((tangent, current), axis=1)).T
    sine = 1 - np.square(cosine)
    along[sine < _PARALLEL] = -np.inf
    along /= np.sqrt(np.maximum(sine, _PARALLEL))
    index = int(np.argmax(along))
    return index if along[index] > 0 else None


def _compute_step(target: Array64, current: Array64, chosen: Array64) -> float:
    """Compute the step in [0, 1] on the chord that is closest to ``target``.

    The chord is from ``current`` to ``chosen``.
    """
    if not np.any(current):
        return 1.0
    to_chosen, to_current, between = target @ chosen, target @ current, chosen @ current
    towards, back = to_chosen - to_current * between, to_current - to_chosen * between
    return float(np.clip(towards / (towards + back), 0, 1)) if towards > 0 and towards + back > 0 else 0.0
