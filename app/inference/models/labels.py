"""Common base of models with a binary target.

Rows are folded as ``z = y x`` with ``y`` in {-1, 1}. So the likelihood is a function of ``z'theta``, and labels need no
array. Targets in the table's units are 0 and 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.models.one_predictor import OnePredictor


@dataclass(frozen=True, slots=True)
class Labels(OnePredictor):
    """A model with one linear predictor and labels as targets."""

    @property
    def smallest_exact(self) -> int:
        """D points for the information, and one for the gradient, as labels are fixed."""
        return self.dimension + 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``(2y - 1) x``, shape ``(n, p)``, dtype of ``x``; any positive target counts as 1."""
        return np.asarray(x * compute_signs(y, x))

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the folded rows."""
        return rows

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Alternate labels, shape ``(n,)``; random ones could be all equal, and labels stay fixed."""
        return np.asarray(np.arange(len(x)) % 2, dtype=np.float64)

    def target_step(self, y: Array64) -> Array64:
        """Return zeros, because labels stay fixed."""
        return np.zeros_like(y)


def compute_signs(y: NDArray[np.floating[Any]], like: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """Compute ``2y - 1`` ``(n, 1)``, of the dtype of ``like``; any positive target counts as 1."""
    signs: NDArray[Any] = (y > 0).astype(like.dtype)
    signs *= 2
    signs -= 1
    return signs[:, None]
