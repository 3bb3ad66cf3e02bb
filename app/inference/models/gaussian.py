"""The Gaussian-mean model: ``x ~ N(theta, s^2 I)`` over real and integer columns.

It is in the design's coordinates: bounds map to -1 and 1, and the noise scale s (1 unless stated) is in these units.
There is no target and no intercept. A row is ``[x, m]``, where the presence ``m`` is 1, or 0 in a null row. Up to a
constant,

    ``f = (x'theta - m |theta|^2 / 2) / s^2``.

So the posterior of a weighted point set under a normal prior is Gaussian and equals its Laplace approximation. One
point, the weighted mean, can represent it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.bounded import bound_symmetric_scores
from app.inference.models.definition import Family, check_noise
from app.inference.models.one_predictor import OnePredictor


@dataclass(frozen=True, slots=True)
class GaussianMean(OnePredictor):
    """The model for a design of ``width`` columns with noise of standard deviation ``noise``."""

    noise: float

    @property
    def row_width(self) -> int:
        """The design row and its presence."""
        return self.width + 1

    @property
    def smallest_exact(self) -> int:
        """One point, the weighted mean."""
        return 1

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[x, 1]``, shape ``(n, p + 1)``, dtype of ``x``."""
        return np.column_stack((x, np.ones(len(x), dtype=x.dtype)))

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Drop the presence."""
        return rows[:, : self.width]

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """``(x'theta - m |theta|^2 / 2) / s^2``, shape ``(n, S)``."""
        lengths = -0.5 * np.vecdot(draws, draws)[:, None]
        coefficients = np.concatenate((draws, lengths), axis=1) * draws.dtype.type(self.noise**-2)
        return np.matmul(rows, coefficients.T, out=out)

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """``sum_s cotangent_s draws_s / s^2``, the same for every point; there is no target."""
        return np.tile(cotangent @ draws / self.noise**2, (len(u), 1)), None

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        total, presence = weights @ self.features(rows), float(weights @ rows[:, -1])
        return Expansion(
            value=float(total @ theta - 0.5 * presence * theta @ theta) / self.noise**2,
            gradient=(total - presence * theta) / self.noise**2,
            information=np.eye(self.width) * (presence / self.noise**2),
        )

    def _standardise(self, rows: Array32, theta: Array64) -> Array32:
        """``(x - m theta) / s``, shape ``(n, p)``."""
        return (self.features(rows) - rows[:, -1:] * theta.astype(np.float32)) / np.float32(self.noise)

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """``(x - theta) / s^2``."""
        return self._standardise(rows, theta) / np.float32(self.noise)

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip the norm of ``W (x - theta)``.

        It is symmetric about zero under the model, so the result is unbiased.
        """
        directions = self._standardise(rows, theta) @ (transform / self.noise).astype(np.float32).T
        return bound_symmetric_scores(directions, np.ones(len(rows), dtype=np.float32), clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """``m e_j / s``, p factors a row."""
        return (rows[:, -1] / np.float32(self.noise))[:, None, None] * np.eye(self.width, dtype=np.float32)

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Zeros: there is no target."""
        return np.zeros(len(x))

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Zeros: there is no target."""
        return np.zeros(len(x))

    def target_step(self, y: Array64) -> Array64:
        """Zeros: there is no target."""
        return np.zeros_like(y)


FAMILY = Family(
    name="gaussian-mean",
    description=(
        "The mean of real and integer columns. Each column is scaled by its bounds to -1 and 1. The noise is normal; "
        "noise_scale is its standard deviation in these units (default 1). There is no target and no intercept."
    ),
    bind=lambda spec, width, _target: GaussianMean(
        width, check_noise(1.0 if spec.noise_scale is None else spec.noise_scale)
    ),
    targets=(),
    features=("real", "integer"),
    intercept=False,
    noise_scale=True,
)
