"""Bayesian probit regression: ``f(x, theta) = log Phi(y x'theta)`` with ``y`` in {-1, 1}.

Phi is the normal distribution function. Rows are folded as ``z = y x``. With ``h(a) = phi(a) / Phi(a)`` the score is
``h(z'theta) z``, and a row's Fisher information is ``h(a) h(-a) x x'``.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.bounded import bound_scores
from app.inference.models.definition import Family
from app.inference.models.labels import Labels
from app.inference.models.normal import LOG_ROOT_TAU, log_cdf

_ACTIVATION: Final = 10.0
"""Activations are clipped to this in scores, so that products of two densities are normal numbers."""


@dataclass(frozen=True, slots=True)
class ProbitRegression(Labels):
    """The model for a design of ``width`` columns, one coefficient each."""

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``log Phi(rows @ draws.T)``, shape ``(n, S)``; single precision clips activations to +-12."""
        values = np.matmul(rows, draws.T, out=out)
        if values.dtype == np.float32:
            return log_cdf(values)
        return np.asarray(scipy.special.log_ndtr(values, out=values))

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``y_m sum_s cotangent_s h(z'draws_s) draws_s``, shape ``(n, p)``; labels stay fixed."""
        activation = (self.fold(u, y) @ draws.T).astype(np.float64, copy=False)  # squares cancel in single precision
        return self.fold((cotangent * _ratio(activation)) @ draws, y), None

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        activation = rows @ theta
        ratio = _ratio(activation)
        curvature = weights * ratio * (ratio + activation)
        return Expansion(
            value=float(weights @ scipy.special.log_ndtr(activation)),
            gradient=rows.T @ (weights * ratio),
            information=rows.T @ (rows * curvature[:, None]),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``h(z'theta) z``."""
        return rows * _ratios(rows, theta)[0][:, None]

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Weight scores by ``min(1, C / (max(h(a), h(-a)) ||W x||))``.

        The residual is at most ``max(h(a), h(-a))`` for either label.
        """
        own, other = _ratios(rows, theta)
        directions = (transform.astype(np.float32) @ rows.T).T
        return bound_scores(directions, own, np.maximum(own, other), clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(h(a) h(-a)) x``, one factor for each row."""
        own, other = _ratios(rows, theta)
        factors: Array32 = rows * np.sqrt(own * other)[:, None]
        return factors[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw labels 0 or 1, shape ``(n,)``, with ``P(1) = Phi(x'theta)``."""
        return np.where(rng.random(len(x)) < scipy.special.ndtr(x @ theta), 1.0, 0.0)


def _ratio(activation: Array64) -> Array64:
    """Compute ``h(a)``, which tends to ``-a`` for large negative a."""
    return np.asarray(np.exp(-0.5 * np.square(activation) - LOG_ROOT_TAU - scipy.special.log_ndtr(activation)))


def _ratios(rows: Array32, theta: Array64) -> tuple[Array32, Array32]:
    """Compute ``h(a)`` and ``h(-a)`` at the activations of ``rows``, ``(n,)`` each."""
    activation = np.clip(rows @ theta.astype(np.float32), -_ACTIVATION, _ACTIVATION)
    density = np.square(activation)
    density *= -0.5
    density -= np.float32(LOG_ROOT_TAU)
    own, other = density - log_cdf(activation.copy()), density - log_cdf(-activation)
    return np.exp(own, out=own), np.exp(other, out=other)


FAMILY = Family(
    name="probit-regression",
    description="Bayesian probit regression of a binary column.",
    bind=lambda _spec, width, _target: ProbitRegression(width),
    targets=("binary",),
)
