"""Common base of conjugate-exponential models that share their rows with a likelihood."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.design import Design
from app.inference.core.linear_algebra import invert
from app.inference.core.model import Array32, Array64, Model
from app.inference.core.priors import HierarchicalPrior, Prior

_LEAST_LENGTH = np.float32(1e-30)
_PRIOR_STEPS = 50
"""Steps of the fixed point between the mean and a hierarchical prior's precision."""


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """The folded rows of ``model`` over ``design``, which has an intercept."""

    model: Model
    design: Design

    @property
    def row_width(self) -> int:
        """As of the likelihood's rows."""
        return self.model.row_width

    @property
    def largest_radius(self) -> float:
        """The largest length of the features' coordinates; 1 without features."""
        return math.sqrt(max(self.design.largest_square - 1, 1))

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold as the likelihood does."""
        return self.model.fold(x, y)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Recover design coordinates, each row up to its sign."""
        return self.model.features(rows)


def compute_gains(width: int, radius: float) -> Array64:
    """Compute the factors ``(p,)`` of coordinates: features of length ``radius`` get length ``sqrt(p - 1)``."""
    return np.append(np.full(width - 1, math.sqrt(max(width - 1, 1)) / radius), 1.0)


def scale_features(rows: Array32, radius: float) -> tuple[Array32, Array32]:
    """Scale features of rows ``(n, p)``, and compute shares ``(n, 1)`` that cut them. Row zone.

    The last coordinate is the intercept. A scaled row times its share has a squared length of at most p.
    """
    features = rows[:, :-1]
    lengths = np.maximum(np.sqrt(np.vecdot(features, features)), _LEAST_LENGTH)
    scaled: Array32 = rows * compute_gains(rows.shape[1], radius).astype(np.float32)
    return scaled, np.minimum(np.float32(radius) / lengths, np.float32(1))[:, None]


def solve_with_prior(information: Array64, gradient: Array64, prior: Prior, gains: Array64) -> tuple[Array64, Array64]:
    """Compute mean and precision of the normal posterior of a quadratic likelihood.

    They are ``(D,)`` and ``(D, D)``. The log-likelihood is ``gradient'u - u' information u / 2`` in coordinates ``u``,
    and ``theta = gains * u``. A hierarchical prior's precision depends on the mean; its fixed point is the mode. Total
    on finite arguments.
    """
    mean: Array64 = np.zeros(len(gradient))
    for _ in range(_PRIOR_STEPS if isinstance(prior, HierarchicalPrior) else 1):
        of_prior = prior.precision(gains * mean) * np.outer(gains, gains)
        precision = information + of_prior
        mean = invert(precision) @ (gradient + of_prior @ (prior.mean / gains))
    return mean, precision
