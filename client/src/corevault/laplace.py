"""Laplace approximations of weighted posteriors: on a pseudocoreset, or on a table of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from corevault.gaussian import Gaussian, from_precision

Array = NDArray[np.float64]

_MOST_STEPS = 200
_DECREMENT = 1e-12  # twice the nats between the mode and where Newton stops


def logistic_laplace(
    x: Array, y: Array, weight: Array | None = None, *, prior_scale: float = 1.0, names: Sequence[str] = ()
) -> Gaussian:
    """The Laplace approximation of weighted Bayesian logistic regression, prior ``N(0, prior_scale² I)``.

    ``x`` ``(n, p)`` is the design matrix, intercept included; ``y`` ``(n,)`` is 0 or 1; ``weight`` ``(n,)``
    is non-negative (ones where absent); ``names`` are the columns' (``x0``, ``x1``, … where absent).

    Newton's method with a Cholesky factor a step and backtracking; the objective is strictly concave, so
    the mode is the only one. Raises ``ValueError`` for shapes, labels or weights out of these bounds.
    """
    weights = np.ones(len(y)) if weight is None else weight
    _check(x, y, weights, prior_scale)
    posterior = _LogPosterior(x, y, weights, 1.0 / prior_scale**2)
    theta = np.zeros(x.shape[1])
    for _ in range(_MOST_STEPS):
        gradient, root = posterior.gradient_and_root(theta)
        step = cho_solve(root, gradient)
        decrement = float(gradient @ step)
        if decrement <= _DECREMENT:
            return from_precision(names or [f"x{i}" for i in range(len(theta))], theta, root)
        theta = theta + posterior.length(theta, step, decrement) * step
    raise ArithmeticError("Newton's method did not reach the mode; the design or the weights are out of scale.")


def _check(x: Array, y: Array, weight: Array, prior_scale: float) -> None:
    if x.ndim != 2 or y.shape != (len(x),) or weight.shape != (len(x),):
        raise ValueError("x must be (n, p), y and weight (n,).")
    if not (np.isfinite(x).all() and np.isfinite(weight).all() and np.isin(y, (0.0, 1.0)).all()):
        raise ValueError("x and weight must be finite, and y 0 or 1.")
    if (weight < 0).any() or not prior_scale > 0:
        raise ValueError("Weights cannot be negative, and prior_scale must be positive.")


@dataclass(frozen=True, eq=False)
class _LogPosterior:
    """The unnormalised log posterior; ``precision`` is the prior's, a multiple of the identity."""

    x: Array
    y: Array
    weight: Array
    precision: float

    def at(self, theta: Array) -> float:
        eta = self.x @ theta
        return float(self.weight @ (self.y * eta - np.logaddexp(0.0, eta)) - 0.5 * self.precision * theta @ theta)

    def gradient_and_root(self, theta: Array) -> tuple[Array, tuple[Array, bool]]:
        p = expit(self.x @ theta)
        gradient = self.x.T @ (self.weight * (self.y - p)) - self.precision * theta
        information = (self.x * (self.weight * p * (1.0 - p))[:, None]).T @ self.x
        return gradient, cho_factor(information + self.precision * np.eye(len(theta)), lower=True)

    def length(self, theta: Array, step: Array, decrement: float) -> float:
        """Armijo backtracking, with room for the objective's own rounding."""
        value = self.at(theta)
        floor = value - 1e-13 * (1.0 + abs(value))
        length = 1.0
        while self.at(theta + length * step) < floor + 1e-4 * length * decrement:
            length *= 0.5
        return length
