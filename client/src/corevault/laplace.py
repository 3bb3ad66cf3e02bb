"""Laplace approximations of weighted posteriors, on a pseudocoreset or on your own table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from corevault._arguments import require_number
from corevault.errors import InvalidArgument, NotConverged, WrongType
from corevault.gaussian import Gaussian, from_precision
from corevault.likelihoods import CURVES, Expansion, Likelihood, OnePredictor
from corevault.prediction import Outcome
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

    Raises ``InvalidArgument`` for shapes, labels or weights out of these bounds.
    """
    x, y = as_floats(x, "x"), as_floats(y, "y")
    weights = np.ones(y.shape) if weight is None else as_floats(weight, "weight")
    check(x, y, weights)
    if not np.isin(y, (0.0, 1.0)).all():
        raise InvalidArgument("y must be 0 or 1.")
    require_number(prior_scale, "prior_scale")
    if not 0 < prior_scale < np.inf:
        raise InvalidArgument("prior_scale must be positive and finite.")
    columns = tuple(names) or tuple(f"x{i}" for i in range(x.shape[1]))
    if len(columns) != x.shape[1]:
        raise InvalidArgument("names must have one name for each column of x.")
    likelihood = OnePredictor(CURVES["logistic-regression"], x, y, weights)
    prior = CoefficientPrior(np.full(x.shape[1], prior_scale))
    return newton(likelihood, prior, columns).about(Outcome("logistic-regression", columns))


def as_floats(values: object, name: str) -> Array:
    """``values`` as an array of floats. Raises ``WrongType`` for anything but numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongType(
            f"{name} must be an array of numbers; make a design matrix first, see design_matrix."
        ) from error


def check(x: Array, y: Array, weight: Array) -> None:
    """Raises ``InvalidArgument`` unless shapes fit together, values are finite and weights not negative."""
    if x.ndim != 2 or y.shape != (len(x),) or weight.shape != (len(x),):
        raise InvalidArgument("x must be (n, p), y and weight (n,).")
    if not all(np.isfinite(values).all() for values in (x, y, weight)):
        raise InvalidArgument("x, y and weight must be finite.")
    if (weight < 0).any():
        raise InvalidArgument("Weights cannot be negative.")


def newton(likelihood: Likelihood, prior: CoefficientPrior, names: Sequence[str]) -> Gaussian:
    """The approximation at the mode, by Newton's method with backtracking from zero.

    A curvature that is not positive definite, as far from the mode of a model with unknown noise, is replaced by its
    absolute value. Raises ``NotConverged`` where no mode is reached.
    """
    posterior = _LogPosterior(likelihood, prior)
    theta = np.zeros(len(names))
    found = posterior.expand(theta)
    for _ in range(_MOST_STEPS):
        if not (np.isfinite(found.information).all() and np.isfinite(found.gradient).all()):
            break
        root = _root(found.information)
        step = cho_solve(root, found.gradient)
        decrement = float(found.gradient @ step)
        if decrement <= _DECREMENT:
            return from_precision(names, theta, root)
        theta, found = posterior.climb(theta, found.value, step, decrement)
    raise NotConverged("Newton's method did not reach the mode; the design or the weights are out of scale.")


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
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by ``newton``
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
