"""The Gaussian-mean model: ``x ~ N(theta, s^2 I)`` over real and integer columns.

It is in the design's coordinates: bounds map to -1 and 1, and the noise scale s (1 unless stated) is in these units.
There is no target and no intercept. A row is ``[x, m]``, where the presence ``m`` is 1, or 0 in a null row. Up to a
constant,

    ``f = (x'theta - m |theta|^2 / 2) / s^2``.

So the posterior of a weighted point set under a normal prior is Gaussian and equals its Laplace approximation. One
point, the weighted mean, can represent it. With a declared covariance of the noise, :class:`CorrelatedMean` takes its
inverse instead of ``1 / s^2``.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Expansion, Model
from app.inference.core.plan import ModelSpec
from app.inference.models.bounded import bound_symmetric_scores
from app.inference.models.definition import LEAST_NOISE, MOST_NOISE, Family, check_noise
from app.inference.models.one_predictor import OnePredictor

LEAST_EIGENVALUE: Final = 1e-4
"""Least eigenvalue of a declared correlation matrix; single precision resolves smaller ones badly."""


@dataclass(frozen=True, slots=True)
class GaussianMean(OnePredictor):
    """The model for a design of ``width`` columns with noise of standard deviation ``noise``."""

    noise: float

    @property
    def precision(self) -> Array64:
        """The inverse covariance of the noise, ``(p, p)``."""
        return np.eye(self.width) / self.noise**2

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


@dataclass(frozen=True, slots=True)
class CorrelatedMean(GaussianMean):
    """The model with noise of a declared covariance.

    ``white`` ``(p, p)`` is lower triangular, and its product with the noise has the identity as its covariance.
    ``noise`` is the root mean square of the standard deviations.
    """

    white: Array64 = field(compare=False)

    @property
    def precision(self) -> Array64:
        """The inverse covariance of the noise, ``(p, p)``."""
        return np.asarray(self.white.T @ self.white)

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``x'P theta - m theta'P theta / 2``, shape ``(n, S)``; P is the precision."""
        whitened = draws @ self.white.T.astype(draws.dtype)
        lengths = -0.5 * np.vecdot(whitened, whitened)[:, None]
        coefficients = np.concatenate((whitened @ self.white.astype(draws.dtype), lengths), axis=1)
        return np.matmul(rows, coefficients.T, out=out)

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``sum_s cotangent_s P draws_s``, the same for every point; there is no target."""
        return np.tile(cotangent @ draws @ self.precision.astype(draws.dtype), (len(u), 1)), None

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        total, presence, precision = weights @ self.features(rows), float(weights @ rows[:, -1]), self.precision
        return Expansion(
            value=float((total - 0.5 * presence * theta) @ precision @ theta),
            gradient=precision @ (total - presence * theta),
            information=presence * precision,
        )

    def _standardise(self, rows: Array32, theta: Array64) -> Array32:
        """Compute whitened residuals, shape ``(n, p)``."""
        off: Array32 = self.features(rows) - rows[:, -1:] * theta.astype(np.float32)
        return off @ self.white.T.astype(np.float32)

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``P (x - theta)``."""
        return self._standardise(rows, theta) @ self.white.astype(np.float32)

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Clip the norm of the score in the given coordinates; it is symmetric about zero under the model."""
        directions = self._standardise(rows, theta) @ (transform @ self.white.T).astype(np.float32).T
        return bound_symmetric_scores(directions, np.ones(len(rows), dtype=np.float32), clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``m`` times the rows of ``white``, p factors a row."""
        return rows[:, -1][:, None, None] * self.white.astype(np.float32)


def _bind(spec: ModelSpec, width: int, _target: Column | None) -> Model:
    if spec.noise_covariance is None:
        return GaussianMean(width, check_noise(1.0 if spec.noise_scale is None else spec.noise_scale))
    covariance = read_covariance(spec)
    white = scipy.linalg.solve_triangular(np.linalg.cholesky(covariance), np.eye(width), lower=True)
    return CorrelatedMean(width, float(np.sqrt(covariance.diagonal().mean())), white)


def read_covariance(spec: ModelSpec) -> Array64:
    """Read the covariance ``(p, p)`` of the noise, in the order of the features.

    A covariance of two features may be stated once; one that is not stated is zero.

    Raises:
        InvalidRequest: at ``/model/noise_covariance``, unless it names features only, has a variance for each, and is
            symmetric and positive definite.
    """
    stated, places = spec.noise_covariance or {}, {name: place for place, name in enumerate(spec.features)}
    pairs = [(one, other, value) for one, row in stated.items() for other, value in row.items()]
    if spec.noise_scale is not None:
        raise _refuse("State a noise scale or a noise covariance, not both.")
    if not places.keys() >= {name for one, other, _ in pairs for name in (one, other)} | stated.keys():
        raise _refuse("Name features of this model.")
    covariance = np.zeros((len(places), len(places)))
    for one, other, value in pairs:
        if stated.get(other, {}).get(one, value) != value:
            raise _refuse("A covariance that is stated twice must have one value.")
        covariance[places[one], places[other]] = covariance[places[other], places[one]] = value
    deviations = np.sqrt(np.maximum(np.nan_to_num(covariance.diagonal()), 0))
    if not (np.isfinite(covariance).all() and LEAST_NOISE <= deviations.min() <= deviations.max() <= MOST_NOISE):
        raise _refuse(f"State the variance of each feature; its root must be {LEAST_NOISE:g} to {MOST_NOISE:g}.")
    correlation = covariance / np.outer(deviations, deviations)
    if not float(np.linalg.eigvalsh(correlation)[0]) >= LEAST_EIGENVALUE:
        raise _refuse("The covariance must be positive definite, and no feature nearly a combination of the others.")
    return covariance


def _refuse(sentence: str) -> InvalidRequest:
    return InvalidRequest.at("/model/noise_covariance", sentence)


FAMILY = Family(
    name="gaussian-mean",
    description=(
        "The mean of real and integer columns. Each column is scaled by its bounds to -1 and 1. The noise is normal; "
        "noise_scale is its standard deviation in these units (default 1), or noise_covariance its covariance. There "
        "is no target and no intercept."
    ),
    bind=_bind,
    targets=(),
    features=("real", "integer"),
    terms=False,
    intercept=False,
    noise_scale=True,
    noise_covariance=True,
)
