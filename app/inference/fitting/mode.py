"""The honest distance of weighted points: between the Laplace approximation at their true mode and the target."""

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.points import Points
from app.inference.fitting.target import Target, divergence, inverse_root, is_resolved
from app.inference.post.laplace import LaplaceDiverged, laplace

_TOLERANCE = 1e-22
_LEFT = 1e-6


def mode_of(
    model: Model, points: Points, prior: Prior, start: Array64, *, tolerance: float = _TOLERANCE
) -> Array64 | None:
    """The posterior mode ``(D,)``; None for points that have none."""
    try:
        mode = laplace(model, model.fold(points.u, points.y), points.weight, prior, start, tolerance=tolerance).mean
    except LaplaceDiverged:
        return None
    return mode if np.all(np.isfinite(mode)) else None


def distance(model: Model, points: Points, prior: Prior, target: Target) -> float:
    """``KL(Laplace(u, w) || target)`` in nats, with the exact information at the mode: no ridge, ever.

    Infinite where no mode is found from the target's mean, nor from the prior's, or where rounding hides directions.
    """
    rows = model.fold(points.u, points.y)
    for start in (target.mean, np.zeros_like(target.mean)):
        mode = mode_of(model, points, prior, start)
        if mode is None:
            continue
        likelihood = model.expand(rows, points.weight, mode)
        posterior = likelihood.information + prior.precision(mode)
        root = inverse_root(posterior)
        if (
            root is not None
            and is_resolved(posterior, root)
            and _is_stationary(root, likelihood.gradient + prior.gradient(mode))
        ):
            return divergence(mode, root, target)
    return float("inf")


def _is_stationary(root: Array64, gradient: Array64) -> bool:
    """Whether less than a millionth of a nat is left to climb."""
    return float(np.sum(np.square(root @ gradient))) < 2 * _LEFT
