"""Scores that are bounded without bias: the last step that the models share.

A score ``r v`` with residual ``r`` and direction ``v = W x`` is bounded by a weight that depends on the design row
alone: with ``|r| <= b(x)`` for every target and ``E[r | x] = 0`` under the model, ``min(1, C / (b ||v||)) r v`` has a
norm of at most C and conditional mean zero (Kuensch, Stefanski & Carroll, *JASA* 84, 1989).
"""

from typing import Final

import numpy as np

from app.inference.protocol import Array32

SHRINK: Final = np.float32(1 - 2.0**-12)
"""Leaves room for single precision: a norm that is to be at most C is not above it after rounding."""

ACTIVATION: Final = 40.0
"""Activations beyond count as these where scores are made: their exponentials, and products of two, are normal."""


def bounded(directions: Array32, residual: Array32, bound: Array32, clip: float) -> Array32:
    """``min(1, C / (bound ||v||)) residual v`` for directions ``v`` ``(n, D)``; written over ``directions``.

    A row that is not finite gives zero. Total: never raises, never warns.
    """
    with np.errstate(all="ignore"):
        norm = np.sqrt(np.vecdot(directions, directions))
        factor = residual * np.minimum(1, np.float32(clip) * SHRINK / (bound * norm))
        directions *= factor[:, None]
        directions[~np.isfinite(factor * norm)] = 0
    return directions
