"""Bayesian logistic regression: ``f(x, theta) = -log(1 + exp(-y x'theta))`` with ``y`` in {-1, 1}.

Rows are folded as ``z = y x`` (intercept coordinate included), so that ``f = log sigmoid(z'theta)``.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion, PullBack
from app.inference.models.bounded import ACTIVATION, bound_scores
from app.inference.models.definition import Family
from app.inference.models.labels import Labels, compute_signs
from app.inference.private_zone.rowwise import add_to_rows

_BOUNDS: dict[type, float] = {np.float32: 80.0, np.float64: 700.0}
"""Activations are clipped to these."""

_PAIR_BOUND = 40.0
"""The same bound for each of two terms of an activation."""


@dataclass(frozen=True, slots=True)
class LogisticRegression(Labels):
    """The model for a design of ``width`` columns, one coefficient each."""

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``log sigmoid(rows @ draws.T) = -log(1 + exp(-a))``, shape ``(n, S)``.

        ``a`` is clipped to prevent overflow and subnormal numbers, which would take longer (W14). In single precision,
        log-likelihoods are at least -80. Otherwise the absolute error is one rounding of 1.
        """
        values = np.matmul(rows, -draws.T, out=out)
        bound = _BOUNDS[values.dtype.type]
        np.clip(values, -bound, bound, out=values)
        np.exp(values, out=values)
        values += 1
        np.log(values, out=values)
        return np.negative(values, out=values)

    @np.errstate(all="ignore")
    def paired_losses(self, rows: Array32, centre: Array32, deviations: Array32, out: Array32) -> Array32:
        """Compute ``c - log sigmoid(c + h)`` and ``c - log sigmoid(c - h)``.

        The former is ``log(exp(c) + exp(-h))``. The pair shares half of the exponentials. ``c`` and ``h`` are clipped
        to prevent overflow and subnormal numbers (W14). If ``c`` is large, the potential is small and its error is one
        rounding of ``c``.
        """
        pairs, columns = len(deviations), out.T
        odds, centred = columns[:pairs], rows @ centre
        np.matmul(-deviations, rows.T, out=odds)
        for values in (odds, centred):
            values.clip(-_PAIR_BOUND, _PAIR_BOUND, out=values)
        np.exp(odds, out=odds)
        np.exp(centred, out=centred)
        np.reciprocal(odds, out=columns[pairs:])
        add_to_rows(out, centred)
        np.log(columns, out=columns)
        return out

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``y_m sum_s cotangent_s sigmoid(-z'draws_s) draws_s``, shape ``(n, p)``; labels stay fixed."""
        _, pull_back = self.point_potentials(u, y, draws)
        return pull_back(cotangent)

    def point_potentials(self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any]) -> tuple[NDArray[Any], PullBack]:
        """Compute ``-log(1 + odds)`` with ``odds`` of the other label; its derivative is ``odds / (1 + odds)``."""
        sign = compute_signs(y, u)
        odds = (u * -sign) @ draws.T
        np.minimum(odds, _BOUNDS[odds.dtype.type], out=odds)
        np.exp(odds, out=odds)
        total = odds + 1

        potentials = np.log(total)
        return np.negative(potentials, out=potentials), partial(self._pull_back, sign, draws, odds / total)

    def _pull_back(
        self, sign: NDArray[Any], draws: NDArray[Any], derivatives: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], None]:
        by_folded = (derivatives * cotangent) @ draws
        by_folded *= sign
        return by_folded, None

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        activation = rows @ theta
        failure = scipy.special.expit(-activation)
        weighted = weights * failure
        return Expansion(
            value=-float(weights @ np.logaddexp(0, -activation)),
            gradient=rows.T @ weighted,
            information=rows.T @ (rows * (weighted - weighted * failure)[:, None]),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sigmoid(-z'theta) z``."""
        return rows * _compute_failure(rows, theta)[:, None]

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Weight scores by ``min(1, C / (max(p, 1 - p) ||W x||))``.

        The residual is at most ``max(p, 1 - p)`` for either label.
        """
        failure = _compute_failure(rows, theta)
        directions = (transform.astype(np.float32) @ rows.T).T
        return bound_scores(directions, failure, np.maximum(failure, 1 - failure), clip)

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(p (1 - p)) x``, one factor for each row."""
        failure = _compute_failure(rows, theta)
        factors: Array32 = rows * np.sqrt(failure * (1 - failure))[:, None]
        return factors[:, None, :]

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw labels 0 or 1, shape ``(n,)``, with ``P(1) = sigmoid(x'theta)``."""
        return np.where(rng.random(len(x)) < scipy.special.expit(x @ theta), 1.0, 0.0)


def _compute_failure(rows: Array32, theta: Array64) -> Array32:
    """Compute the probability of the other label, ``(n,)``.

    It is so large that no product with it is subnormal.
    """
    values = rows @ theta.astype(np.float32)
    np.clip(values, -ACTIVATION, ACTIVATION, out=values)
    np.exp(values, out=values)
    values += 1
    return np.reciprocal(values, out=values)


FAMILY = Family(
    name="logistic-regression",
    description="Bayesian logistic regression of a binary column.",
    bind=lambda _spec, width, _target: LogisticRegression(width),
    targets=("binary",),
)
