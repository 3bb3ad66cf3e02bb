"""Points from a tight frame: a random one, or one close to a region.

The latter is found by alternating projections: points are projected into the region, and the frame onto the nearest
one that keeps the posterior exact.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.isometries import find_isometries
from app.inference.fitting.links import Link
from app.inference.fitting.moment_equations import PredictorSolution
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region
from app.inference.fitting.subspaces import Subspace

_BUDGET = 5e9
"""Floating-point operations of the alternating projections at most."""
_MOST_PROJECTIONS = 200


def make_points(
    link: Link, subspace: Subspace, solution: PredictorSolution, rng: np.random.Generator, region: Region | None
) -> Points:
    """Make points with the predictors of ``solution`` in ``subspace``.

    They are as close to ``region`` as exactness allows.
    """
    k, root, width = len(subspace.information), np.sqrt(subspace.information), np.sqrt(solution.mass)
    pull = np.divide(subspace.pull, root, out=np.zeros(k), where=root > 0)
    sources, images = [root * subspace.basis[-1], root * subspace.mean], [width, width * solution.a]
    if solution.ratio is not None:
        scores = width * solution.ratio
        rest = np.sqrt(max(float(scores @ scores - pull @ pull), 0.0))
        sources = [np.append(each, 0.0) for each in sources] + [np.append(pull, rest)]
        images.append(scores)
    isometries = find_isometries(np.column_stack(sources), np.column_stack(images))
    frame = isometries.random(rng)
    shape = np.zeros((frame.shape[1], len(subspace.basis)))
    shape[:k] = root[:, None] * subspace.basis.T
    if region is not None:
        for _ in range(_count_projections(*frame.shape)):
            inside = region.rows(region.coordinates(_make_rows(frame, shape, width)))
            frame = isometries.nearest((width[:, None] * inside) @ shape.T, frame)
    ratio = (frame[:, :k] @ pull) / width if solution.ratio is None else solution.ratio
    y = link.targets(solution.a, ratio)
    return Points(_make_rows(frame, shape, width), y, solution.mass / link.curve(solution.a, y).curvature)


def _make_rows(frame: Array64, shape: Array64, width: Array64) -> Array64:
    u = (frame @ shape) / width[:, None]
    u[:, -1] = 1.0
    return np.asarray(u)


def _count_projections(size: int, directions: int) -> int:
    return int(np.clip(_BUDGET / (30 * size * directions**2), 5, _MOST_PROJECTIONS))
