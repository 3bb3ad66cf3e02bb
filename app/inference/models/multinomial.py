"""Bayesian multinomial logistic regression of K classes.

``P(y = k) = exp(x'theta_k) / (1 + sum_j exp(x'theta_j))``. The first declared class, k = 0, is the reference: its
coefficients are zero. ``theta`` holds the coefficients of classes 1 to K - 1 one after the other, ``D = (K - 1) p``.
Rows are ``[x, y]`` with y the index of the class in declared order. The log-likelihood of a null row is the constant
``-log K``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.inference.core.model import Array32, Array64, Expansion, Model, SeparateEvaluation
from app.inference.core.plan import ModelSpec
from app.inference.models.bounded import ACTIVATION, SHRINK, compute_norms
from app.inference.models.definition import Family
from app.inference.private_zone.rowwise import zero_rows_unless

_BOUNDS: Final[dict[type, float]] = {np.float32: 80.0, np.float64: 700.0}
"""Largest activation in each precision; larger ones are clipped."""

_ACTIVATION: Final = ACTIVATION / 2
"""Largest activation in scores. It is halved, because a probability is a ratio of two exponentials."""


@dataclass(frozen=True, slots=True)
class MultinomialLogistic(SeparateEvaluation):
    """The model for a design of ``width`` columns and the declared ``classes``."""

    width: int
    classes: tuple[str, ...]

    @property
    def predictors(self) -> int:
        """One linear predictor for each class except the first."""
        return len(self.classes) - 1

    @property
    def dimension(self) -> int:
        """One coefficient for each design column and each class except the first."""
        return self.predictors * self.width

    @property
    def row_width(self) -> int:
        """The design row and the class."""
        return self.width + 1

    @property
    def smallest_exact(self) -> int:
        """One more than the number of parameters. Some posteriors need fewer points."""
        return self.dimension + 1

    def parameter_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """``class:column``, class by class."""
        return tuple(f"{name}:{column}" for name in self.classes[1:] for column in columns)

    def fold(self, x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Fold to ``[x, y]``, shape ``(n, p + 1)``, dtype of ``x``."""
        return np.column_stack((x, y)).astype(x.dtype, copy=False)

    def features(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Drop the class."""
        return rows[:, : self.width]

    def _encode_classes(self, y: NDArray[Any]) -> NDArray[Any]:
        """Encode classes as indicators ``(n, K - 1)`` of all classes except the first."""
        chosen: NDArray[Any] = y[:, None] == np.arange(1, len(self.classes))
        return chosen.astype(y.dtype)

    def _activations(self, x: NDArray[Any], draws: NDArray[Any], bound: float) -> Iterator[NDArray[Any]]:
        """Yield clipped ``x'theta_k``, ``(n, S)`` in Fortran order, class by class."""
        for k in range(self.predictors):
            values = (draws[:, k * self.width : (k + 1) * self.width] @ x.T).T
            yield np.clip(values, -bound, bound, out=values)

    @np.errstate(all="ignore")
    def log_likelihood(self, rows: NDArray[Any], draws: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute ``x'theta_y - log(1 + sum_k exp(x'theta_k))``, shape ``(n, S)``."""
        chosen = self._encode_classes(rows[:, -1])
        own = np.empty((len(draws), len(rows)), dtype=rows.dtype).T if out is None else out
        own[...] = 0
        total = np.ones_like(own)
        for k, values in enumerate(self._activations(self.features(rows), draws, _BOUNDS[rows.dtype.type])):
            own += chosen[:, k, None] * values
            total += np.exp(values, out=values)
        own -= np.log(total, out=total)
        return own

    def point_gradient(
        self, u: NDArray[Any], y: NDArray[Any], draws: NDArray[Any], cotangent: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Compute ``sum_s cotangent_s sum_k (1{y = k} - p_ks) theta_ks``, shape ``(n, p)``.

        There is no gradient in the classes, which are discrete.
        """
        chosen, gradient = self._encode_classes(y), np.zeros_like(u)
        odds = [np.exp(values) for values in self._activations(u, draws, _BOUNDS[u.dtype.type])]
        total = 1 + np.sum(odds, axis=0)
        for k, each in enumerate(odds):
            coefficients = draws[:, k * self.width : (k + 1) * self.width]
            gradient += ((chosen[:, k, None] - each / total) * cotangent) @ coefficients
        return gradient, None

    def _predict(self, x: NDArray[Any], theta: NDArray[Any], bound: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute log-odds relative to the first class, and probabilities, ``(n, K - 1)`` each."""
        values = np.clip(x @ theta.reshape(self.predictors, self.width).T, -bound, bound)
        odds = np.exp(values)
        return values, odds / (1 + odds.sum(axis=1, keepdims=True))

    def expand(self, rows: Array64, weights: Array64, theta: Array64) -> Expansion:
        """Expand ``sum_m weights_m f(rows_m, .)`` to second order at ``theta``."""
        x, chosen = self.features(rows), self._encode_classes(rows[:, -1])
        values, p = self._predict(x, theta, _BOUNDS[np.float64])
        own = np.vecdot(chosen, values) - np.log1p(np.exp(values).sum(axis=1))
        covariance = weights[:, None, None] * (p[:, :, None] * (np.eye(self.predictors) - p[:, None, :]))
        information = np.empty((self.predictors, self.width, self.predictors, self.width))
        for j in range(self.predictors):
            for k in range(self.predictors):
                information[j, :, k, :] = x.T @ (x * covariance[:, j, k, None])
        return Expansion(
            value=float(weights @ own),
            gradient=((chosen - p).T @ (x * weights[:, None])).ravel(),
            information=information.reshape(self.dimension, self.dimension),
        )

    @np.errstate(all="ignore")
    def scores(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``(1{y = k} - p_k) x``, class by class."""
        x = self.features(rows)
        residual = self._encode_classes(rows[:, -1]) - self._predict(x, theta.astype(np.float32), _ACTIVATION)[1]
        return self._blocks(residual, x)

    def _blocks(self, residual: Array32, x: Array32) -> Array32:
        """Compute ``residual_k x``, shape ``(n, D)``."""
        return (residual[:, :, None] * x[:, None, :]).reshape(len(x), self.dimension)

    @np.errstate(all="ignore")
    def bounded_scores(self, rows: Array32, theta: Array64, transform: Array64, clip: float) -> Array32:
        """Weight scores by ``min(1, C / max_k ||W score_k||)``, over all K classes.

        ``score_k`` is the score if the row's class were k. So the weight does not depend on the class.
        """
        x, metric = self.features(rows), transform.astype(np.float32)
        chosen = self._encode_classes(rows[:, -1])
        mean = self._blocks(self._predict(x, theta.astype(np.float32), _ACTIVATION)[1], x) @ metric.T
        directions, most = -mean, compute_norms(mean)
        for k in range(self.predictors):
            own = x @ metric[:, k * self.width : (k + 1) * self.width].T
            directions += chosen[:, k, None] * own
            np.maximum(most, compute_norms(own - mean), out=most)
        weight = np.minimum(1, np.float32(clip) * SHRINK / most)
        directions *= weight[:, None]
        zero_rows_unless(directions, np.isfinite(weight * most + rows[:, -1]))
        return directions

    @np.errstate(all="ignore")
    def information_factors(self, rows: Array32, theta: Array64) -> Array32:
        """Compute ``sqrt(p_k) (1_k - p) x`` for each class; for the first it is ``-sqrt(p_0) p x``."""
        x = self.features(rows)
        p = self._predict(x, theta.astype(np.float32), _ACTIVATION)[1]
        first = np.maximum(1 - p.sum(axis=1, keepdims=True), 0)
        outcomes = np.concatenate((np.zeros((1, self.predictors)), np.eye(self.predictors))).astype(np.float32)
        roots = np.sqrt(np.concatenate((first, p), axis=1))
        residual = roots[:, :, None] * (outcomes - p[:, None, :])
        factors: Array32 = residual[..., None] * x[:, None, None, :]
        return factors.reshape(len(x), len(self.classes), self.dimension)

    def sample_targets(self, rng: np.random.Generator, x: Array64, theta: Array64) -> Array64:
        """Draw class indices, shape ``(n,)``."""
        p = self._predict(x, theta, _BOUNDS[np.float64])[1]
        above = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
        return np.asarray((rng.random((len(x), 1)) < above).sum(axis=1), dtype=np.float64)

    def starting_targets(self, rng: np.random.Generator, x: Array64) -> Array64:
        """Assign the classes in turn, shape ``(n,)``. Descent does not change them."""
        return np.asarray(np.arange(len(x)) % len(self.classes), dtype=np.float64)

    def target_step(self, y: Array64) -> Array64:
        """Return zeros, because descent does not change the classes."""
        return np.zeros_like(y)


def _bind(_spec: ModelSpec, width: int, target: Column | None) -> Model:
    return MultinomialLogistic(width, () if target is None else target.categories)


FAMILY = Family(
    name="multinomial-logistic",
    description=(
        "Bayesian multinomial logistic regression of a categorical column. The first category is the reference."
    ),
    bind=_bind,
    targets=("categorical",),
)
