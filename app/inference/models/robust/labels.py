"""Beta-likelihoods of binary targets.

With the probabilities p of a row's label and q of the other one,

    ``f = (p^beta - 1) / beta - (p^(1+beta) + q^(1+beta) - 1) / (1 + beta)``.

The score is the model's, times the weight ``w = p^beta q + q^beta p``. So is the expected information. The weight is at
most 1. It is the same for both labels, so it depends on the design row alone: rows far from the decision boundary are
damped, whether their label is right or wrong.

Bounded scores also damp rows far from the centre of the declared bounds (Mallows weights, Kuensch, Stefanski & Carroll
1989), because wrong features lie there. Scores keep their mean of zero, as with every weight of the design row.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64, Expansion
from app.inference.models.logistic import LogisticRegression
from app.inference.models.normal import LOG_ROOT_TAU
from app.inference.models.probit import ProbitRegression
from app.inference.models.robust.decorator import Robust
from app.inference.private_zone.rowwise import zero_rows_unless

_LEAST_LOG: Final = -40.0
"""Least log-probability whose power of ``1 + beta`` is computed; the rest of the sum is larger by a factor of e^40."""
_NEAR: Final = 0.25
"""Mean square of the coordinates, in half ranges, up to which a row is not damped."""
_LEAST_LOG_WEIGHT: Final = -25.0
"""Least logarithm of a part of the weight; so no product with a score is subnormal."""


@dataclass(frozen=True, slots=True)
class RobustLabels(Robust[LogisticRegression | ProbitRegression]):
    """Logistic or probit regression with a beta-likelihood."""

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the potentials ``(n, S)``."""
        own = self.model.log_likelihood(rows, draws, out=out)
        other = self.model.log_likelihood(-rows, draws, out=np.empty_like(own))
        rest = np.maximum(own, _LEAST_LOG)
        np.maximum(other, _LEAST_LOG, out=other)
        rest *= 1 + self.beta
        other *= 1 + self.beta
        np.exp(rest, out=rest)
        rest += np.exp(other, out=other)
        rest -= 1
        rest *= 1 / (1 + self.beta)
        own *= self.beta
        np.exp(own, out=own)
        own -= 1
        own *= 1 / self.beta
        own -= rest
        return own

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute the gradient in the points; labels stay fixed."""
        link = _differentiate(self.model, (self.model.fold(u, y) @ draws.T).astype(np.float64, copy=False))
        slopes = (np.exp(link.log_slope) * self._weigh(link.own, link.other)).astype(u.dtype, copy=False)
        return self.model.fold((cotangent * slopes) @ draws, y), None

    def _weigh(self, own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """Compute ``w`` from the log-probabilities of both labels, same shape."""
        parts = (self.beta * own + other, self.beta * other + own)
        weight: NDArray[Any] = sum(np.exp(np.maximum(part, _LEAST_LOG_WEIGHT)) for part in parts)
        return weight

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand to second order at ``theta``; ``scoring`` is the expected information."""
        beta, link = self.beta, _differentiate(self.model, rows @ theta)
        own, other, slope, weight = link.own, link.other, np.exp(link.log_slope), self._weigh(link.own, link.other)
        squares = [
            np.exp(2 * link.log_slope + power)
            for power in (beta * own, (1 + beta) * own, 2 * own + (beta - 1) * other)  # each is bounded
        ]
        curvature = (1 - beta) * squares[0] + beta * (squares[1] + squares[2]) - link.bend * weight
        value = np.expm1(beta * own) / beta - (np.exp((1 + beta) * own) + np.exp((1 + beta) * other) - 1) / (1 + beta)
        return Expansion(
            value=float(weights @ value),
            gradient=rows.T @ (weights * slope * weight),
            information=rows.T @ (rows * (weights * curvature)[:, None]),
            scoring=rows.T @ (rows * (weights * (squares[1] + squares[2]))[:, None]),
        )

    def _row_weights(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``w`` ``(n,)`` at one parameter. Row zone."""
        single = theta.astype(np.float32)[None, :]
        own, other = (self.model.log_likelihood(each, single)[:, 0] for each in (rows, -rows))
        weight: Array32 = self._weigh(own, other)
        return weight

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``w`` times the model's scores."""
        return self.model.scores(rows, theta) * self._row_weights(rows, theta)[:, None]

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Compute weights times the model's bounded scores; they are at most 1 and depend on the design row alone."""
        weight = np.minimum(self._row_weights(rows, theta), np.float32(1)) * _damp(rows)
        scores = self.model.bounded_scores(rows, theta, transform, clip) * weight[:, None]
        zero_rows_unless(scores, np.isfinite(weight))
        return scores

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(w)`` times the model's factors."""
        factors = self.model.information_factors(rows, theta)
        factors *= np.sqrt(self._row_weights(rows, theta))[:, None, None]
        return factors


def _damp(rows: Array32) -> Array32:
    """Compute weights ``(n,)`` of at most 1 that fall with a row's mean square. Row zone.

    The last coordinate is the intercept.
    """
    features = rows[:, :-1]
    limit = np.float32(_NEAR * features.shape[1])
    weights: Array32 = limit / np.maximum(np.vecdot(features, features), limit)
    return weights


class _Link(NamedTuple):
    """Log-probabilities ``own`` of the row's label and ``other``, and derivatives in the linear predictor.

    ``log_slope`` is the logarithm of ``(log p)'``, ``bend`` is ``p'' / p``.
    """

    own: Array64
    other: Array64
    log_slope: Array64
    bend: Array64


def _differentiate(model: LogisticRegression | ProbitRegression, a: Array64) -> _Link:
    """Differentiate at predictors ``a``, signed by the label, in double precision."""
    if isinstance(model, LogisticRegression):
        own, other = -np.logaddexp(0, -a), -np.logaddexp(0, a)
        q = np.exp(other)
        return _Link(own, other, other, q * (q - np.exp(own)))
    own, other = scipy.special.log_ndtr(a), scipy.special.log_ndtr(-a)
    log_slope = -0.5 * np.square(a) - LOG_ROOT_TAU - own
    return _Link(own, other, log_slope, -a * np.exp(log_slope))
