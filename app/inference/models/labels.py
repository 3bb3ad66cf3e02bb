"""What models of a binary target share: rows folded as ``z = y x`` with ``y`` in {-1, 1}, so that the likelihood is a
function of ``z'theta`` and a label costs no array of its own. Targets in the table's units are 0 and 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.models.one_predictor import OnePredictor


@dataclass(frozen=True, slots=True)
class Labels(OnePredictor):
    """Folding, and where labels start."""

    @property
    def smallest_exact(self) -> int:
        """Points span an information of rank D; labels are not free, so one more brings the gradient to zero."""
        return self.dimension + 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """``(2y - 1) x``, shape ``(n, p)``, dtype of ``x``; any positive target counts as 1."""
        return np.asarray(x * signs(y, x))

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The folded rows themselves."""
        return rows

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Labels in turn, shape ``(n,)``: drawn ones may all be equal, and labels do not move afterwards."""
        return np.asarray(np.arange(len(x)) % 2, dtype=np.float64)

    def target_step(self, y: Array64) -> Array64:
        """Labels do not move."""
        return np.zeros_like(y)


def signs(y: NDArray[np.floating[Any]], like: NDArray[np.floating[Any]]) -> NDArray[Any]:
    """``2y - 1`` ``(n, 1)``, of the dtype of ``like``; any positive target counts as 1."""
    found: NDArray[Any] = (y > 0).astype(like.dtype)
    found *= 2
    found -= 1
    return found[:, None]
