"""Closed-form points of the Gaussian-mean model: all points are equal.

Their information is ``t B`` for any location. B is the identity, or for correlated noise in proportion to its
precision. At ``x``, the score ``t B (x - mean)`` cancels the prior's gradient exactly. The scalar ``t`` minimises the
divergence of the precision ``P0 + t B`` from the target's.
"""

import numpy as np
import scipy

from app.inference.core.priors import Prior
from app.inference.fitting.points import Points
from app.inference.fitting.target import Target
from app.inference.models.gaussian import GaussianMean

_SPAN = 20.0


def fit_gaussian_mean(model: GaussianMean, prior: Prior, target: Target, size: int) -> Points:
    """Fit ``size`` equal points with zero targets and equal weights.

    Args:
        model: gives the noise scale.
        prior: of the D means.
        target: the Gaussian to approximate, over D parameters.
        size: the number M of points.
    """
    prior_precision, base = prior.precision(target.mean), model.precision * model.noise**2
    trace = float(np.mean(np.diag(target.precision)))

    def loss(log_information: float) -> float:
        precision = prior_precision + np.exp(log_information) * base
        return float(np.trace(np.linalg.solve(precision, target.precision)) + np.linalg.slogdet(precision)[1])

    start = np.log(max(trace, np.finfo(np.float64).tiny))
    minimum = scipy.optimize.minimize_scalar(
        loss, bounds=(start - _SPAN, start + _SPAN), method="bounded", options={"xatol": 1e-12}
    )
    information = float(np.exp(minimum.x))
    u = np.tile(target.mean - np.linalg.solve(base, prior.gradient(target.mean)) / information, (size, 1))
    return Points(u, np.zeros(size), np.full(size, information * model.noise**2 / size))
