"""What bounds take from each direction, where rows of few columns carry all that is known of some, and its restoration.

Restoring what a score lost grows its noise, by the square. So the least share that is made up for follows from what the
score's noise then costs, in the metric of what is believed: early, where it is large, none is made up for beyond what
it would be if all directions were alike.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from app.inference.core.model import Array32, Array64
from app.inference.methods.surrogate.matrices import Metric, sound, symmetric

LEAST = 0.6
"""Of the information, that is ever said to be kept by all directions alike."""
_FLOORS = np.geomspace(0.1, LEAST, 13)
_MOST_NATS = 60.0
"""Of noise that a score may have by restoring what it lost."""
_MOST_GROWN = 1.5 / LEAST**2
"""Times that noise may grow however large it is."""
_OF_PRIOR = 0.1
"""Where rows tell less than that part of the prior, nothing is to be restored."""
_TINY = float(np.finfo(np.float64).tiny)


class Kept(NamedTuple):
    """``share`` of the information, the mean over directions; ``back`` ``(D, D)`` makes up for it in a gradient."""

    share: float
    back: Array64


@dataclass(frozen=True, slots=True, eq=False)
class Informations:
    """``full`` ``(D, D)`` is the rows' information in the metric ``within``; of its directions ``vectors`` ``(D, D)``,
    orthonormal by it, bounds keep ``shares`` ``(D,)``.
    """

    within: Metric
    full: Array64
    vectors: Array64
    shares: Array64

    def kept(self, believed: Metric, asked: Metric, nats: float) -> Kept | None:
        """With as much restored as a score bears that has ``nats`` of noise in the metric ``believed``, or None.

        It is asked in the metric ``asked``, which may have more.
        """
        most = _MOST_GROWN * growth(asked.factor, believed)
        for floor in _FLOORS:
            shares = np.clip(self.shares, floor, 1.0)
            back = self.within.factor @ self.full @ (self.vectors / shares) @ self.vectors.T @ self.within.whitening
            grown = growth(back @ asked.factor, believed)
            if nats * grown <= _MOST_NATS or (floor == LEAST and grown <= most):
                return Kept(float(shares.mean()), back)
        return None


def growth(factor: Array64, believed: Metric) -> float:
    """The variance of noise ``factor z`` ``(D,)`` with z of variance 1, in a metric and on average over directions."""
    return float(np.square(believed.whitening @ factor).sum()) / len(factor)


def informations(factors: Array64, weights: Array64, within: Metric, prior: Array64) -> Informations | None:
    """From the rows' factors ``(n, D)`` in the metric and the ``weights`` ``(n,)`` of their scores; None without any.

    A part of the ``prior`` ``(D, D)`` counts as kept, so that directions that rows tell nothing of have a share.
    """
    part = _OF_PRIOR * within.whitening @ prior @ within.whitening.T
    full = sound(symmetric(factors.T @ factors + part))
    if full is None:
        return None
    left = symmetric(factors.T @ (factors * weights[:, None]) + part)
    shares, vectors = scipy.linalg.eigh(left, full)
    return Informations(within, full, np.asarray(vectors), np.asarray(shares))


def weights_of(bounded: Array32, whole: Array32) -> Array64:
    """``(n,)``: those of rows, which depend on no label."""
    norms = (np.linalg.norm(each.astype(np.float64), axis=1) for each in (bounded, whole))
    after, before = (np.maximum(each, _TINY) for each in norms)
    return np.asarray(np.minimum(after / before, 1.0))
