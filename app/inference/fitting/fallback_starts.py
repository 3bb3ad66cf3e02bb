"""Starting points of descent where no closed form exists.

Examples are a single point with a label, a target without information, and a target that no points can represent.
"""

from dataclasses import replace

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.points import Points
from app.inference.fitting.problem import OnePredictorProblem
from app.inference.fitting.subspaces import Subspace, find_subspace

_JITTER = 0.1
_MOST_PREDICTOR = 2.0


def make_fallback_starts(problem: OnePredictorProblem, size: int, rng: np.random.Generator) -> list[Points]:
    """Make points without weight, and points near the direction with the largest divergence.

    The posterior of the former is the prior.
    """
    try:
        subspace = find_subspace(*problem.coefficients(), 1)
    except np.linalg.LinAlgError:  # overflow
        subspace = Subspace(np.zeros((problem.width, 0)), np.empty(0), np.empty(0), np.empty(0))
    centre = _find_location(subspace.basis)
    u = centre + _JITTER * rng.uniform(-1, 1, (size, len(centre))) * (size > 1)
    u[:, -1] = 1.0
    a = np.full(size, float(subspace.mean @ (subspace.basis.T @ centre)) if len(subspace.mean) else 0.0)
    a = np.clip(a, -_MOST_PREDICTOR, _MOST_PREDICTOR)
    y: Array64 = (
        np.asarray(np.arange(size) % 2, dtype=np.float64)
        if problem.link.labels
        else problem.link.targets(a, np.zeros(size))
    )
    information = float(subspace.information @ np.square(subspace.basis[-1]))
    heavy = Points(u, y, information / size / problem.link.curve(a, y).curvature)
    swapped = [replace(heavy, y=1 - y)] if problem.link.labels else []
    return [replace(heavy, weight=np.zeros(size)), *(each for each in (heavy, *swapped) if each.is_finite)]


def _find_location(basis: Array64) -> Array64:
    """Find the point of a one-dimensional subspace whose intercept is 1.

    If its other coordinates would be too large, it is the point whose other coordinates are 0.
    """
    intercept = np.zeros(len(basis))
    intercept[-1] = 1.0
    if basis.shape[1] == 0 or abs(basis[-1, 0]) < _JITTER * np.max(np.abs(basis)):
        return intercept
    return np.asarray(basis[:, 0] / basis[-1, 0])
