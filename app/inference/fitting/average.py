"""Points of the Gaussian-mean model: all at the weighted mean that they stand for.

Their information is ``t I``, whatever they are; the score ``t (x - mean)`` balances the prior's pull exactly, and ``t``
is what brings ``P0 + t I`` closest to the target's precision.
"""

import numpy as np
import scipy

from app.inference.core.priors import Prior
from app.inference.fitting.points import Points
from app.inference.fitting.target import Target
from app.inference.models.gaussian import GaussianMean

_SPAN = 20.0


def fit_average(model: GaussianMean, prior: Prior, target: Target, size: int) -> Points:
    """``size`` equal points; without information they have no weight."""
    prior_precision = prior.precision(target.mean)
    trace = float(np.mean(np.diag(target.precision)))

    def loss(log_information: float) -> float:
        precision = prior_precision + np.exp(log_information) * np.eye(len(target.mean))
        return float(np.trace(np.linalg.solve(precision, target.precision)) + np.linalg.slogdet(precision)[1])

    start = np.log(max(trace, np.finfo(np.float64).tiny))
    found = scipy.optimize.minimize_scalar(
        loss, bounds=(start - _SPAN, start + _SPAN), method="bounded", options={"xatol": 1e-12}
    )
    information = float(np.exp(found.x))
    u = np.tile(target.mean - prior.gradient(target.mean) / information, (size, 1))
    return Points(u, np.zeros(size), np.full(size, information * model.noise**2 / size))
