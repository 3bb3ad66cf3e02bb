"""Laplace approximations of weighted posteriors: on a pseudocoreset, or on a table of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from corevault.gaussian import Gaussian, from_precision
from corevault.likelihoods import CURVES, Expansion, Likelihood, OnePredictor
from corevault.prior import CoefficientPrior

Array = NDArray[np.float64]

_MOST_STEPS = 500
_DECREMENT = 1e-12  # twice the nats between the mode and where Newton stops


def logistic_laplace(
    x: Array, y: Array, weight: Array | None = None, *, prior_scale: float = 1.0, names: Sequence[str] = ()
) -> Gaussian:
    """The Laplace approximation of weighted Bayesian logistic regression, prior ``N(0, prior_scale² I)``.

    ``x`` ``(n, p)`` is the design matrix, intercept included; ``y`` ``(n,)`` is 0 or 1; ``weight`` ``(n,)``
    is non-negative (ones where absent); ``names`` are the columns' (``x0``, ``x1``, … where absent).

    Raises ``ValueError`` for shapes, labels or weights out of these bounds.
    """
    weights = np.ones(len(y)) if weight is None else weight
    check(x, y, weights)
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("y must be 0 or 1.")
    if not prior_scale > 0:
        raise ValueError("prior_scale must be positive.")
    likelihood = OnePredictor(CURVES["logistic-regression"], x, y, weights)
    prior = CoefficientPrior(np.full(x.shape[1], prior_scale))
    return newton(likelihood, prior, names or [f"x{i}" for i in range(x.shape[1])])


def check(x: Array, y: Array, weight: Array) -> None:
    """Raises ``ValueError`` unless shapes fit together, values are finite and weights not negative."""
    if x.ndim != 2 or y.shape != (len(x),) or weight.shape != (len(x),):
        raise ValueError("x must be (n, p), y and weight (n,).")
    if not all(np.isfinite(values).all() for values in (x, y, weight)):
        raise ValueError("x, y and weight must be finite.")
    if (weight < 0).any():
        raise ValueError("Weights cannot be negative.")


def newton(likelihood: Likelihood, prior: CoefficientPrior, names: Sequence[str]) -> Gaussian:
    """The approximation at the mode, by Newton's method with backtracking from zero.

    A curvature that is not positive definite, as far from the mode of a model with unknown noise, is replaced by its
    absolute value. Raises ``ArithmeticError`` where no mode is reached.
    """
    posterior = _LogPosterior(likelihood, prior)
    theta = np.zeros(len(names))
    found = posterior.expand(theta)
    for _ in range(_MOST_STEPS):
        root = _root(found.information)
        step = cho_solve(root, found.gradient)
        decrement = float(found.gradient @ step)
        if decrement <= _DECREMENT:
            return from_precision(names, theta, root)
        theta, found = posterior.climb(theta, found.value, step, decrement)
    raise ArithmeticError("Newton's method did not reach the mode; the design or the weights are out of scale.")


def _root(information: Array) -> tuple[Array, bool]:
    """Its Cholesky factor, or that of its absolute value."""
    try:
        return cho_factor(information, lower=True)  # type: ignore[no-any-return]
    except LinAlgError:
        values, vectors = eigh(information)
        floor = 1e-12 * np.abs(values).max()
        return cho_factor((vectors * np.maximum(np.abs(values), floor)) @ vectors.T, lower=True)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class _LogPosterior:
    """The unnormalised log posterior."""

    likelihood: Likelihood
    prior: CoefficientPrior

    def expand(self, theta: Array) -> Expansion:
        value, gradient, information = self.likelihood.expand(theta)
        precision = self.prior.precision(theta)
        return Expansion(
            value + self.prior.log_density(theta), gradient - precision * theta, information + np.diag(precision)
        )

    def climb(self, theta: Array, value: float, step: Array, decrement: float) -> tuple[Array, Expansion]:
        """Armijo backtracking, with room for the objective's own rounding."""
        floor, length = value - 1e-13 * (1.0 + abs(value)), 1.0
        while True:
            found = self.expand(theta + length * step)
            if found.value >= floor + 1e-4 * length * decrement or length < 1e-12:
                return theta + length * step, found
            length *= 0.5
