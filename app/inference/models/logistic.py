"""Bayesian logistic regression: ``f(x, theta) = -log(1 + exp(-y x'theta))`` with ``y`` in {-1, 1}.

Rows are folded as ``z = y x`` (intercept coordinate included), so that ``f = log sigmoid(z'theta)`` and a label costs
no array of its own. Targets in the table's units are 0 and 1.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.errors import InvalidRequest
from app.inference.protocol import Array64, Column, Expansion

_BOUNDS: dict[type, float] = {np.float32: 80.0, np.float64: 700.0}
"""Activations beyond count as these."""


class LogisticRegression:
    """The model ``logistic-regression``: binary target, prior ``N(0, prior_scale**2 I)``."""

    family = "logistic-regression"
    description = "Bayesian logistic regression of a binary column, normal prior on the coefficients."

    def check_target(self, column: Column) -> None:
        """Raise :class:`InvalidRequest` unless ``column`` is binary."""
        if column.type != "binary":
            raise InvalidRequest.at("/model/target", "logistic regression needs a binary target")

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """``(2y - 1) x``, shape ``(n, p)``, dtype of ``x``; any positive target counts as 1."""
        return x * np.where(y > 0, 1, -1).astype(x.dtype)[:, None]

    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """``log sigmoid(rows @ draws.T) = -log(1 + exp(-a))``, shape ``(n, S)``.

        ``a`` is bounded so that nothing overflows and nothing is subnormal, which would take longer (W14): in single
        precision, log-likelihoods end at -80. An absolute error of one rounding of 1 is all that is lost elsewhere.
        """
        values = np.matmul(rows, -draws.T, out=out)
        bound = _BOUNDS[values.dtype.type]
        np.clip(values, -bound, bound, out=values)
        np.exp(values, out=values)
        values += 1
        np.log(values, out=values)
        return np.negative(values, out=values)

    def row_gradient(self, rows: Array64, draws: Array64, cotangent: Array64) -> Array64:
        """``sum_s cotangent_s sigmoid(-rows'draws_s) draws_s``, shape ``(n, p)``."""
        odds = rows @ draws.T
        with np.errstate(over="ignore"):  # infinite odds of success have the right gradient: zero
            np.exp(odds, out=odds)
        odds += 1
        np.divide(cotangent, odds, out=odds)
        return np.asarray(odds @ draws)

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        activation = rows @ theta
        failure = expit(-activation)
        tail = np.log1p(np.exp(-np.abs(activation)))
        curvature = weights * failure * (1 - failure)
        return Expansion(
            value=float(weights @ (np.minimum(activation, 0) - tail)),
            gradient=rows.T @ (weights * failure),
            information=rows.T @ (rows * curvature[:, None]),
        )

    def sample_prior(self, rng: np.random.Generator, n: int, p: int, prior_scale: float) -> Array64:
        """``(n, p)`` draws from ``N(0, prior_scale**2 I)``."""
        return prior_scale * rng.standard_normal((n, p))

    def prior_log_density(self, theta: Array64, prior_scale: float) -> Array64:
        """Log density of ``N(0, prior_scale**2 I)`` at ``(n, p)`` parameters, shape ``(n,)``."""
        p = theta.shape[1]
        squares = np.sum(np.square(theta / prior_scale), axis=1)
        return np.asarray(-0.5 * squares - p * (np.log(prior_scale) + 0.5 * np.log(2 * np.pi)))

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Labels 0 or 1, shape ``(n,)``, with ``P(1) = sigmoid(x'theta)``."""
        return np.where(rng.random(len(x)) < expit(x @ theta), 1.0, 0.0)

    def starting_targets(self, rng: np.random.Generator, x: Array64, prior_scale: float) -> Array64:
        """Labels in turn, shape ``(n,)``: drawn ones may all be equal, and labels do not move afterwards."""
        return np.asarray(np.arange(len(x)) % 2, dtype=np.float64)
