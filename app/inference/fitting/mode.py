"""The mode of weighted points' posterior, and its divergence from a target."""

import numpy as np

from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.points import Points
from app.inference.fitting.target import Target, compute_divergence, compute_inverse_root, is_well_conditioned
from app.inference.post.laplace import LaplaceDiverged, fit_laplace

_TOLERANCE = 1e-22
"""Squared Newton decrement at which the search ends: twice the distance to the mode in nats."""
_REMAINING_NATS = 1e-6
"""Nats that a further Newton step may gain at a point that counts as the mode."""


def find_mode(
    model: Model, points: Points, prior: Prior, start: Array64, *, tolerance: float = _TOLERANCE
) -> Array64 | None:
    """Find the posterior mode ``(D,)`` by Newton steps from ``start``.

    Returns None if they do not converge to a finite mode.
    """
    try:
        mode = fit_laplace(model, model.fold(points.u, points.y), points.weight, prior, start, tolerance=tolerance).mean
    except LaplaceDiverged:
        return None
    return mode if np.all(np.isfinite(mode)) else None


def compute_distance(model: Model, points: Points, prior: Prior, target: Target) -> float:
    """Compute the KL divergence, in nats, from the posterior of the points to ``target``.

    The posterior is its Laplace approximation, with the exact information at the mode: nothing is added to its
    diagonal. The search starts at the target's mean, and then at the prior's. The divergence is infinite if neither
    start leads to a mode, or if the information there is ill-conditioned.
    """
    rows = model.fold(points.u, points.y)
    for start in (target.mean, prior.mean):
        mode = find_mode(model, points, prior, start)
        if mode is None:
            continue
        likelihood = model.expand(rows, points.weight, mode)
        posterior = likelihood.information + prior.precision(mode)
        root = compute_inverse_root(posterior)
        if (
            root is not None
            and is_well_conditioned(posterior, root)
            and _is_stationary(root, likelihood.gradient + prior.gradient(mode))
        ):
            return compute_divergence(mode, root, target)
    return float("inf")


def _is_stationary(root: Array64, gradient: Array64) -> bool:
    """Whether a Newton step would gain less than ``_REMAINING_NATS``."""
    return float(np.sum(np.square(root @ gradient))) < 2 * _REMAINING_NATS
