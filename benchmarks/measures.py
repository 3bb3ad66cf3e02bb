"""Quality of a release: distance from the full posterior, and predictions of held-out rows.

Predictive probabilities integrate over a Laplace approximation ``N(m, V)``. They are exact for normal likelihoods; for
logistic regression ``p(y = 1 | x) = expit(x'm / sqrt(1 + pi x'Vx / 8))``, the probit approximation (MacKay 1992).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit

from app.inference.core.model import Array64
from app.inference.core.release import Posterior, Pseudocoreset
from app.inference.models.gaussian import GaussianMean
from app.inference.models.linear import LinearRegression
from app.inference.post.laplace import Laplace, fit_laplace
from benchmarks.cases import Case, make_design_rows
from support.divergence import compute_divergence


class Prediction(NamedTuple):
    """Accuracy on held-out rows, and log predictive density in nats a row.

    A label counts as predicted if its probability is above one half.
    """

    accuracy: float
    log_likelihood: float


NO_PREDICTION = Prediction(math.nan, math.nan)


def fit_posterior(case: Case, release: Pseudocoreset) -> Laplace:
    """The posterior given the released points. Starts the search for the mode from zero."""
    model, design, prior = case.problem
    y = np.zeros(len(release.u)) if release.y is None else design.encode_targets(release.y)
    return fit_laplace(model, model.fold(release.u, y), release.weight, prior, prior.mean)


def read_stated(stated: Posterior) -> Laplace:
    """A posterior that a release states by its mean and covariance."""
    covariance = np.diag(stated.covariance) if stated.covariance.ndim == 1 else stated.covariance
    factor = np.asarray(np.linalg.cholesky(np.linalg.inv(covariance)), dtype=np.float64)
    return Laplace(stated.mean, factor)


def compute_prior_divergence(case: Case) -> float:
    """KL from the prior to the full posterior."""
    prior = case.problem.prior
    assert case.exact is not None
    origin = prior.mean
    factor = np.asarray(np.linalg.cholesky(prior.precision(origin)), dtype=np.float64)
    return compute_divergence(Laplace(origin, factor), case.exact)


def compute_prediction(case: Case, belief: Laplace) -> Prediction:
    """The prediction of the case's held-out rows."""
    if case.held_out is None:
        return NO_PREDICTION
    model = case.problem.model
    x, y = make_design_rows(case, case.held_out)
    if isinstance(model, GaussianMean):
        return _gaussian(x, belief, model.noise, float(case.spec.noise_scale or 1.0))
    mean = x @ belief.mean
    variance = np.square(solve_triangular(belief.factor, x.T, lower=True)).sum(axis=0)
    if isinstance(model, LinearRegression):
        spread = model.noise**2 + variance
        scale = case.problem.design.target_scale
        assert scale is not None
        density = _normal(y - mean, spread) - math.log(scale.half)
        return Prediction(math.nan, float(density.mean()))
    margin = np.where(y > 0, 1, -1) * mean / np.sqrt(1 + np.pi * variance / 8)
    return Prediction(float((margin > 0).mean()), float(np.log(np.maximum(expit(margin), 1e-300)).mean()))


def _gaussian(x: Array64, belief: Laplace, noise: float, unit: float) -> Prediction:
    """The prediction of rows ``x ~ N(m, V + s^2 I)``.

    ``unit`` is the length of a raw unit in the design's coordinates.
    """
    inverse = solve_triangular(belief.factor, np.eye(len(belief.mean)), lower=True)
    factor = np.linalg.cholesky(inverse.T @ inverse + noise**2 * np.eye(len(belief.mean)))
    white = solve_triangular(factor, (x - belief.mean).T, lower=True)
    lengths = np.square(white).sum(axis=0)
    constant = np.log(np.diag(factor) / unit).sum() + 0.5 * len(belief.mean) * math.log(2 * math.pi)
    return Prediction(math.nan, float((-0.5 * lengths - constant).mean()))


def _normal(deviation: Array64, variance: Array64) -> Array64:
    return np.asarray(-0.5 * (np.square(deviation) / variance + np.log(2 * np.pi * variance)))
