"""Projection of points onto the convex hull of all possible design rows.

In that set the coordinates of numbers and of binary columns are in [-1, 1]; a column whose bounds coincide is 0. The
indicators of a categorical column are shares: not negative, with a sum of at most 1. The rest is the share of the
first category. The intercept is 1. A share between 0 and 1 is the part of a point's weight in that category.

Terms have bounds too, and the columns of a spline are shares. Bounds across features are left out: a point
may have a product that its factors do not have. So with terms the set contains the convex hull.
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
    """Project points ``u`` ``(M, p)`` onto the declared bounds; the result is the nearest set of points ``(M, p)``.

    Distances are Euclidean.
    """
    lower, upper = design.lower, design.upper
    inside = np.ones_like(u) if design.intercept else np.zeros_like(u)
    inside[:, : len(lower)] = np.clip(u[:, : len(lower)], lower, upper)
    for block in design.shares:
        inside[:, block] = _project_onto_simplex(u[:, block])
    return inside


def _project_onto_simplex(values: Array64) -> Array64:
    """Project vectors ``(M, k)`` onto non-negative ones with sum at most 1.

    The algorithm is that of Held, Wolfe & Crowder (1974).
    """
    positive = np.maximum(values, 0)
    descending = -np.sort(-values, axis=1)
    excess = np.cumsum(descending, axis=1) - 1
    counts = np.arange(1, values.shape[1] + 1)
    active = (descending * counts > excess).sum(axis=1)
    shift = np.take_along_axis(excess, active[:, None] - 1, axis=1) / active[:, None]
    full = positive.sum(axis=1, keepdims=True) > 1
    return np.where(full, np.maximum(values - shift, 0), positive)
