"""Where to start with several classes: points whose classes are balanced against a frame of the information.

The information of K classes is ``sum_m w_m (diag(p_m) - p_m p_m') (x) x_m x_m'``. Were the probabilities the same
everywhere, ``V (x) S`` with the intercept's block ``n V``, then a frame of S whose rows are orthogonal to every class
would have a score of zero; descent does the rest. No closed form is known for probabilities that vary.
"""

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.bends import probabilities
from app.inference.fitting.frames import isometries
from app.inference.fitting.points import Points
from app.inference.fitting.scalars import counts_of
from app.inference.fitting.target import Target

_LEAST_SHARE = 1e-3
_LEAST_EIGENVALUE = 1e-9


def balance_classes(
    target: Target, prior_precision: Array64, predictors: int, size: int, rng: np.random.Generator
) -> Points:
    """``size`` points for ``target`` with ``predictors`` q blocks of coefficients, roughly right."""
    width = len(target.mean) // predictors
    blocks = (target.precision - prior_precision).reshape(predictors, width, predictors, width)
    values, vectors = np.linalg.eigh(blocks[:, -1, :, -1])
    values = np.maximum(values, _LEAST_EIGENVALUE * max(float(values[-1]), _LEAST_EIGENVALUE))
    inverse = (vectors / values) @ vectors.T
    second = np.einsum("ab,aibj->ij", inverse, blocks) / predictors
    centre = second[:, -1] / max(float(second[-1, -1]), _LEAST_EIGENVALUE)
    p = probabilities((target.mean.reshape(predictors, width) @ np.append(centre[:-1], 1.0))[None, :])[0]
    total = float(np.sum(values)) / max(float(np.sum(p * (1 - p))), _LEAST_SHARE)
    shares = np.maximum(np.append(1 - p.sum(), p), _LEAST_SHARE)
    counts = counts_of(shares / shares.sum(), size)
    y = np.repeat(np.arange(predictors + 1.0), counts)
    mass = np.repeat(shares / shares.sum() / np.maximum(counts, 1), counts)
    return Points(_rows(second, y, mass, rng), y, total * mass)


def _rows(second: Array64, y: Array64, mass: Array64, rng: np.random.Generator) -> Array64:
    """Rows of second moments ``second``, each class centred alike as far as there are points for it."""
    values, vectors = np.linalg.eigh(second)
    root = vectors * np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * max(float(values[-1]), 1.0)))
    intercept, width = root[-1], np.sqrt(mass)
    classes = width[:, None] * (y[:, None] == np.unique(y)[:-1])
    spare = max(min(classes.shape[1], len(y) - len(second)), 0)
    kept = min(len(second), len(y))
    sources = np.zeros((kept + spare, 1 + spare))
    sources[:kept, 0] = intercept[-kept:]
    sources[kept:, 1:] = np.eye(spare)
    basis, _ = np.linalg.qr(np.column_stack((width, classes[:, :spare])))
    images = np.column_stack((width, basis[:, 1:]))
    u = (isometries(sources, images).random(rng)[:, :kept] @ root[:, -kept:].T) / width[:, None]
    u[:, -1] = 1.0
    return np.asarray(u)
