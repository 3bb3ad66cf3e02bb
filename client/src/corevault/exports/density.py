"""The log density of a weighted model, written once for NumPy, JAX and PyTensor.

Each formula is a sum over pseudopoints of weight times log-likelihood, plus the log prior, up to a constant. The module
``corevault.likelihoods`` has the same densities with derivatives; tests compare the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp

from corevault.errors import InvalidArgument
from corevault.likelihoods import REFERENCE_NOISE
from corevault.weighted_model import WeightedModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Operations:
    """The functions of one array library that the formulas need."""

    array: Callable[[Array], Any]
    exp: Callable[[Any], Any]
    log1p: Callable[[Any], Any]
    softplus: Callable[[Any], Any]
    """``log(1 + exp(x))``."""
    log_ndtr: Callable[[Any], Any]
    """The logarithm of the standard normal distribution function."""
    log_sum_exp: Callable[[Any], Any]
    """``log(1 + sum_k exp(x_mk))`` of a matrix ``(M, K)``, shape ``(M,)``."""


NUMPY: Final = Operations(
    array=np.asarray,
    exp=np.exp,
    log1p=np.log1p,
    softplus=lambda x: np.logaddexp(0.0, x),
    log_ndtr=log_ndtr,
    log_sum_exp=lambda x: logsumexp(np.pad(x, ((0, 0), (1, 0))), axis=1),
)


def make_log_density(model: WeightedModel, ops: Operations) -> Callable[[Any], Any]:
    """The function of ``theta`` ``(D,)`` that returns the unnormalised log posterior density, a scalar."""
    weight, rows = ops.array(model.weight), make_row_densities(model, ops)

    def log_density(theta: Any) -> Any:
        return (weight * rows(theta)).sum() + _log_prior(model, ops, theta)

    return log_density


def make_row_densities(model: WeightedModel, ops: Operations) -> Callable[[Any], Any]:
    """The function of ``theta`` ``(D,)`` that returns each row's log-likelihood ``(n,)``, without weights.

    Raises ``InvalidArgument`` for a family that this version does not support.
    """
    rows = _ROWS.get(model.family)
    if rows is None:
        raise InvalidArgument(f"This version has no program for {model.family!r}; upgrade corevault.")
    data = _Data(model, ops, ops.array(model.x), ops.array(model.y))
    return lambda theta: rows(data, theta)


@dataclass(frozen=True, eq=False)
class _Data:
    model: WeightedModel
    ops: Operations
    x: Any
    y: Any

    def predictor(self, theta: Any) -> Any:
        return self.x @ theta[: self.model.x.shape[1]]


def _logistic(data: _Data, theta: Any) -> Any:
    eta = data.predictor(theta)
    return data.y * eta - data.ops.softplus(eta)


def _probit(data: _Data, theta: Any) -> Any:
    return data.ops.log_ndtr((2.0 * data.y - 1.0) * data.predictor(theta))


def _poisson(data: _Data, theta: Any) -> Any:
    eta = data.predictor(theta)
    return data.y * eta - data.ops.exp(eta)


def _negative_binomial(data: _Data, theta: Any) -> Any:
    dispersion = data.model.dispersion
    assert dispersion is not None, "the family has it"
    eta = data.predictor(theta)
    return data.y * eta - (data.y + 1.0 / dispersion) * data.ops.log1p(dispersion * data.ops.exp(eta))


def _noisy(data: _Data, theta: Any) -> Any:
    """Linear and Student-t regression. ``log_scale`` is relative to the reference, or zero for known noise."""
    model, ops = data.model, data.ops
    log_scale = theta[-1] if model.noise is None else 0.0
    scale = REFERENCE_NOISE * ops.exp(log_scale) if model.noise is None else model.noise
    error = (data.y - data.predictor(theta)) / scale
    degrees = model.noise_degrees_of_freedom
    if degrees is None:
        return -0.5 * error**2 - log_scale
    return -0.5 * (degrees + 1.0) * ops.log1p(error**2 / degrees) - log_scale


def _multinomial(data: _Data, theta: Any) -> Any:
    free, width = data.model.classes - 1, data.model.x.shape[1]
    eta = data.x @ theta.reshape((free, width)).T
    is_class = (data.model.y[:, None] == np.arange(1, free + 1)).astype(np.float64)
    return (data.ops.array(is_class) * eta).sum(axis=1) - data.ops.log_sum_exp(eta)


def _mean(data: _Data, theta: Any) -> Any:
    assert data.model.noise is not None, "the family has it"
    if data.model.white is not None:
        return -0.5 * (((data.x - theta) @ data.ops.array(data.model.white.T)) ** 2).sum(axis=1)
    return -0.5 * (((data.x - theta) / data.model.noise) ** 2).sum(axis=1)


_ROWS: Final[dict[str, Callable[[_Data, Any], Any]]] = {
    "logistic-regression": _logistic,
    "probit-regression": _probit,
    "poisson-regression": _poisson,
    "negative-binomial-regression": _negative_binomial,
    "linear-regression": _noisy,
    "student-t-regression": _noisy,
    "multinomial-logistic": _multinomial,
    "gaussian-mean": _mean,
}


def _log_prior(model: WeightedModel, ops: Operations, theta: Any) -> Any:
    prior = model.prior
    mean = ops.array(np.broadcast_to(np.asarray(prior.mean, dtype=np.float64), prior.scales.shape).copy())
    squares = ((theta - mean) / ops.array(prior.scales)) ** 2
    if prior.degrees_of_freedom is None:
        return -0.5 * squares.sum()
    degrees, shared = prior.degrees_of_freedom, prior.shared
    joint = -0.5 * (degrees + shared) * ops.log1p(squares[:shared].sum() / degrees)
    return joint if shared == len(prior.scales) else joint - 0.5 * squares[shared:].sum()
