"""Starting points of descent for the multinomial model.

The information of K classes is ``sum_m w_m (diag(p_m) - p_m p_m') (x) x_m x_m'``. If the probabilities were equal in
all rows, it would be ``V (x) S``, with the intercept's block ``n V``. Points from a tight frame of S whose rows are
orthogonal to every class would then have a score of zero. No closed form is known for probabilities that vary, so
descent improves these points.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.isometries import find_isometries
from app.inference.fitting.moment_equations import apportion
from app.inference.fitting.points import Points
from app.inference.fitting.potential_derivatives import compute_class_probabilities
from app.inference.fitting.target import Target

_LEAST_SHARE = 1e-3
_LEAST_EIGENVALUE = 1e-9


def make_balanced_classes(
    target: Target, prior_precision: Array64, predictors: int, size: int, rng: np.random.Generator
) -> Points:
    """Make ``size`` approximate points for ``target``, which has ``predictors`` blocks of coefficients."""
    width = len(target.mean) // predictors
    blocks = (target.precision - prior_precision).reshape(predictors, width, predictors, width)
    values, vectors = np.linalg.eigh(blocks[:, -1, :, -1])
    values = np.maximum(values, _LEAST_EIGENVALUE * max(float(values[-1]), _LEAST_EIGENVALUE))
    inverse = (vectors / values) @ vectors.T
    second = np.einsum("ab,aibj->ij", inverse, blocks) / predictors
    centre = second[:, -1] / max(float(second[-1, -1]), _LEAST_EIGENVALUE)
    p = compute_class_probabilities((target.mean.reshape(predictors, width) @ np.append(centre[:-1], 1.0))[None, :])[0]
    total = float(np.sum(values)) / max(float(np.sum(p * (1 - p))), _LEAST_SHARE)
    shares = np.maximum(np.append(1 - p.sum(), p), _LEAST_SHARE)
    counts = apportion(shares / shares.sum(), size)
    y = np.repeat(np.arange(predictors + 1.0), counts)
    mass = np.repeat(shares / shares.sum() / np.maximum(counts, 1), counts)
    return Points(_make_rows(second, y, mass, rng), y, total * mass)


def _make_rows(second: Array64, y: Array64, mass: Array64, rng: np.random.Generator) -> Array64:
    """Make rows ``(M, p)`` of second moments ``second`` ``(p, p)``.

    All classes have the same mean as far as the number of points allows.
    """
    values, vectors = np.linalg.eigh(second)
    root = vectors * np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * max(float(values[-1]), 1.0)))
    intercept, width = root[-1], np.sqrt(mass)
    classes = width[:, None] * (y[:, None] == np.unique(y)[:-1])
    spare = max(min(classes.shape[1], len(y) - len(second)), 0)
    rank = min(len(second), len(y))
    sources = np.zeros((rank + spare, 1 + spare))
    sources[:rank, 0] = intercept[-rank:]
    sources[rank:, 1:] = np.eye(spare)
    basis, _ = np.linalg.qr(np.column_stack((width, classes[:, :spare])))
    images = np.column_stack((width, basis[:, 1:]))
    u = (find_isometries(sources, images).random(rng)[:, :rank] @ root[:, -rank:].T) / width[:, None]
    u[:, -1] = 1.0
    return np.asarray(u)
