"""Common base of models of counts with the mean ``mu = exp(x'beta)``.

Rows are ``[x, y]``. Predictors are clipped; in the row zone, means are from e^-20 to e^20. Pseudopoints may have any
real target within the declared bounds.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.models.one_predictor import OnePredictor
from app.inference.models.residuals import Residuals, weigh_scores

_BOUNDS: Final[dict[type, float]] = {np.float32: 20.0, np.float64: 300.0}
MOST_SAMPLED: Final = 40.0
"""Largest predictor of a count that is drawn."""
_ONE_EVENT: Final = np.float32(0.5)
"""Added to a mean in the scale of its residual: one event at a small mean is then not many deviations."""


@dataclass(frozen=True, slots=True)
class Counts(OnePredictor):
    """The part that does not depend on the distribution; the target has declared bounds."""

    lower: float
    upper: float

    @property
    def row_width(self) -> int:
        """The design row and the target."""
        return self.width + 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[x, y]``, shape ``(n, p + 1)``, dtype of ``x``."""
        return np.column_stack((x, y)).astype(x.dtype, copy=False)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Drop the target."""
        return rows[:, : self.width]

    def _rates(self, rows: Array32, theta: Array64) -> Array32:
        """Compute the means ``mu`` ``(n,)``."""
        rates: Array32 = clip_predictors(self.features(rows) @ theta[: self.width].astype(np.float32))
        return np.exp(rates, out=rates)

    @property
    def redescending(self) -> bool:
        """Whether scores of far residuals are small: no."""
        return False

    @property
    def squares(self) -> bool:
        """Whether there is a parameter of noise: no."""
        return False

    @np.errstate(all="ignore")
    def residuals(self, rows: Array32, theta: Array64) -> Residuals:
        """Compute standardised residuals and their scales.

        They are ``(y - mu) / (r s)`` with the ratio r of variance and mean. The scale is ``s = sqrt((mu + 1/2) / r)``.
        """
        mean = self._rates(rows, theta)
        ratio = self._compute_variance_ratio(mean)
        scale: Array32 = np.sqrt((mean + _ONE_EVENT) / ratio)
        return Residuals((rows[:, -1] - mean) / (ratio * scale), scale)

    def _compute_variance_ratio(self, mean: Array32) -> Array32:
        """Compute the variance of counts over their ``mean``: 1 for Poisson counts."""
        return np.ones_like(mean)

    def largest_residual(self, theta: Array64) -> float:
        """Compute the residual of the largest target at a mean of zero."""
        return float(max(self.upper, 1.0) / np.sqrt(_ONE_EVENT))

    @np.errstate(all="ignore")
    def cut_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float, cut: float) -> Array32:
        """Cut ``e`` to ``+-cut``, and weight by the design row (:func:`weigh_scores`)."""
        found = self.residuals(rows, theta)
        directions = (transform.astype(np.float32) @ self.features(rows).T).T
        return weigh_scores(directions * found.scale[:, None], found.standard, cut, clip)

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Spread targets evenly in ``log(1 + y)`` over the declared bounds, in random order."""
        even = np.expm1(np.linspace(np.log1p(self.lower), np.log1p(self.upper), len(x)))
        return rng.permutation(np.clip(even, self.lower, self.upper))

    def target_step(self, y: Array64) -> Array64:
        """Return ``1 + y``, which makes steps equal in ``log(1 + y)``."""
        return 1 + y


def clip_predictors(values: NDArray[Any]) -> NDArray[Any]:
    """Clip ``values`` in place to the range of their precision."""
    bound = _BOUNDS[values.dtype.type]
    np.clip(values, -bound, bound, out=values)
    return values
