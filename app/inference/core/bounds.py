"""Points inside the declared bounds, so that they can be read as rows.

The set is the smallest convex one that holds every possible design row: coordinates of numbers and of binary columns
lie in [-1, 1] (a column whose bounds coincide is 0), and the indicators of a categorical column are shares: not
negative, and at most 1 together, where what is left is the share of the first category. The intercept is 1. A share
between 0 and 1 is no category: a point says how much of its weight has which.
"""

from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.knobs import Switch
from app.inference.core.model import Array64

WITHIN_BOUNDS: Final = Switch(
    "within_bounds",
    "Keep every point inside the declared bounds; indicator columns of a categorical feature then hold shares.",
)


def project(design: Design, u: Array64) -> Array64:
    """The nearest points ``(M, p)``, in Euclidean distance, to ``u`` ``(M, p)`` within the declared bounds."""
    inside = np.clip(u, -1, 1)
    for feature, block in zip(design.features, design.blocks, strict=True):
        if feature.type == "categorical" and block.start < block.stop:
            inside[:, block] = _shares(u[:, block])
        elif feature.constant:
            inside[:, block] = 0
    if design.intercept:
        inside[:, -1] = 1
    return inside


def _shares(values: Array64) -> Array64:
    """The nearest non-negative vectors ``(M, k)`` with a sum of at most 1 (Held, Wolfe & Crowder 1974)."""
    positive = np.maximum(values, 0)
    descending = -np.sort(-values, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    counts = np.arange(1, values.shape[1] + 1)
    active = (descending * counts > excess).sum(axis=1)
    shift = np.take_along_axis(excess, active[:, None] - 1, axis=1) / active[:, None]
    full = positive.sum(axis=1, keepdims=True) > 1
    return np.where(full, np.maximum(values - shift, 0), positive)
