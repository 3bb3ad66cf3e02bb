"""Clipping norm and width for a population drawn from the declared bounds.

They are public: they depend on no row and, at the start, on no answer.
"""

from typing import Final

import numpy as np

from app.inference.core.model import Array64, Model

CLIP_QUANTILE: Final = 0.9
CLIP_FACTOR: Final = 1.5


def compute_clip(model: Model, rng: np.random.Generator, x: Array64, theta: Array64, rows_per_unit: int) -> float:
    """Compute the clipping norm C for a population; it may be infinite or NaN.

    The population has design rows ``x`` and targets from the model at ``theta``.
    """
    with np.errstate(all="ignore"):
        rows = np.asarray(model.fold(x.astype(np.float32), model.sample_targets(rng, x, theta)), dtype=np.float32)
        scores = model.scores(rows, theta).astype(np.float64)
        norm = np.quantile(np.sqrt(np.vecdot(scores, scores)), CLIP_QUANTILE)
    return float(CLIP_FACTOR * norm * np.sqrt(rows_per_unit))


def compute_mean_information(model: Model, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
    """Compute the mean diagonal ``(D,)`` of a row's Fisher information at ``theta`` ``(D,)``."""
    rows = np.asarray(model.fold(x.astype(np.float32), model.sample_targets(rng, x, theta)), dtype=np.float32)
    factors = model.information_factors(rows, theta).astype(np.float64)
    return np.asarray(np.square(factors).sum(axis=1).mean(axis=0))
