"""Laplace approximations of weighted posteriors, from a pseudocoreset or a table of the caller."""

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
_DECREMENT = 1e-12  # twice the distance from the mode in nats at which Newton's method stops


def logistic_laplace(
    x: Array,
    y: Array,
    weight: Array | None = None,
    *,
    prior_scale: float = 1.0,
    prior_mean: Array | float = 0.0,
    names: Sequence[str] = (),
) -> Gaussian:
    """The Laplace approximation of weighted Bayesian logistic regression, prior ``N(prior_mean, prior_scale² I)``.

    ``x`` ``(n, p)`` is the design matrix with the intercept, and ``y`` ``(n,)`` is 0 or 1. ``weight`` ``(n,)`` is
    non-negative, by default 1. ``prior_mean`` is one number, or ``(p,)``. ``names`` are the columns' names, by default
    ``x0``, ``x1``, ….

    Raises ``InvalidArgument`` for other shapes, labels, weights or means.

    >>> x, y = np.array([[1.0], [-1.0], [1.0]]), np.array([1.0, 0.0, 0.0])
    >>> logistic_laplace(x, y).mean.round(2)
    array([0.29])
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
        raise InvalidArgument(f"names must have one name for each of the {x.shape[1]} columns of x.")
    likelihood = OnePredictor(CURVES["logistic-regression"], x, y, weights)
    mean = as_floats(prior_mean, "prior_mean")
    if mean.shape not in {(), (x.shape[1],)} or not np.isfinite(mean).all():
        raise InvalidArgument(f"prior_mean must be a finite number, or {x.shape[1]} of them, one for each column of x.")
    prior = CoefficientPrior(np.full(x.shape[1], prior_scale), mean=np.broadcast_to(mean, x.shape[1]))
    return newton(likelihood, prior, columns).with_outcome(Outcome("logistic-regression", columns))


def as_floats(values: object, name: str) -> Array:
    """``values`` as an array of floats. Raises ``WrongType`` for anything but numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongType(
            f"{name} must be an array of numbers; make a design matrix first, see design_matrix."
        ) from error


def check(x: Array, y: Array, weight: Array) -> None:
    """Raises ``InvalidArgument`` unless shapes agree, values are finite and weights are non-negative."""
    if x.ndim != 2 or y.shape != (len(x),) or weight.shape != (len(x),):
        raise InvalidArgument(
            f"x must have the shape (n, p), y and weight the shape (n,); got {x.shape}, {y.shape} and {weight.shape}."
        )
    if not all(np.isfinite(values).all() for values in (x, y, weight)):
        raise InvalidArgument("x, y and weight must be finite; drop or impute rows with NaN or infinity.")
    if (weight < 0).any():
        raise InvalidArgument("weight must not be negative.")


def newton(likelihood: Likelihood, prior: CoefficientPrior, names: Sequence[str]) -> Gaussian:
    """The approximation at the mode, by Newton's method with backtracking from zero.

    Far from the mode of a model with unknown noise, the information matrix may not be positive definite. Then its
    eigenvalues are replaced by their absolute values. Raises ``NotConverged`` if the mode is not reached.
    """
    posterior = _LogPosterior(likelihood, prior)
    theta = np.zeros(len(names))
    expansion = posterior.expand(theta)
    for _ in range(_MOST_STEPS):
        if not (np.isfinite(expansion.information).all() and np.isfinite(expansion.gradient).all()):
            break
        root = _root(expansion.information)
        step = cho_solve(root, expansion.gradient)
        decrement = float(expansion.gradient @ step)
        if decrement <= _DECREMENT:
            return from_precision(names, theta, root)
        theta, expansion = posterior.climb(theta, expansion.value, step, decrement)
    raise NotConverged(
        "Newton's method did not reach the mode; the design or the weights are out of scale. Pass the rows of a design "
        "matrix, whose columns lie in [-1, 1]."
    )


def _root(information: Array) -> tuple[Array, bool]:
    """The Cholesky factor of ``information``, or of its absolute value."""
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
        with np.errstate(over="ignore", invalid="ignore"):  # ``newton`` refuses infinite values
            value, gradient, information = self.likelihood.expand(theta)
        precision = self.prior.precision(theta)
        return Expansion(
            value + self.prior.log_density(theta),
            gradient - precision * (theta - self.prior.mean),
            information + np.diag(precision),
        )

    def climb(self, theta: Array, value: float, step: Array, decrement: float) -> tuple[Array, Expansion]:
        """Armijo backtracking, with a tolerance for the rounding error of the objective."""
        floor, length = value - 1e-13 * (1.0 + abs(value)), 1.0
        while True:
            expansion = self.expand(theta + length * step)
            if expansion.value >= floor + 1e-4 * length * decrement or length < 1e-12:
                return theta + length * step, expansion
            length *= 0.5
