"""How good a release is: its posterior beside the full one, and beside rows that nobody has seen.

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
from app.inference.post.laplace import Laplace, laplace
from benchmarks.cases import Case, design_rows
from support.divergence import divergence


class Prediction(NamedTuple):
    """Share of held-out labels that are more likely than not, and log predictive density in nats a row."""

    accuracy: float
    log_likelihood: float


NO_PREDICTION = Prediction(math.nan, math.nan)


def posterior(case: Case, release: Pseudocoreset) -> Laplace:
    """That of the released points, whatever made them: the mode is searched anew."""
    model, design, prior = case.problem
    y = np.zeros(len(release.u)) if release.y is None else design.encode_targets(release.y)
    return laplace(model, model.fold(release.u, y), release.weight, prior, np.zeros(model.dimension))


def read_stated(found: Posterior) -> Laplace:
    """A posterior that a release states by its mean and covariance."""
    covariance = np.diag(found.covariance) if found.covariance.ndim == 1 else found.covariance
    factor = np.asarray(np.linalg.cholesky(np.linalg.inv(covariance)), dtype=np.float64)
    return Laplace(found.mean, factor)


def prior_divergence(case: Case) -> float:
    """KL from the prior to the full posterior: what knowing nothing costs."""
    prior = case.problem.prior
    assert case.exact is not None
    origin = np.zeros(prior.dimension)
    factor = np.asarray(np.linalg.cholesky(prior.precision(origin)), dtype=np.float64)
    return divergence(Laplace(origin, factor), case.exact)


def prediction(case: Case, found: Laplace) -> Prediction:
    """Of the case's held-out rows."""
    if case.held_out is None:
        return NO_PREDICTION
    model = case.problem.model
    x, y = design_rows(case, case.held_out)
    if isinstance(model, GaussianMean):
        return _gaussian(x, found, model.noise, float(case.spec.noise_scale or 1.0))
    mean = x @ found.mean
    variance = np.square(solve_triangular(found.factor, x.T, lower=True)).sum(axis=0)
    if isinstance(model, LinearRegression):
        spread = model.noise**2 + variance
        scale = case.problem.design.target_scale
        assert scale is not None
        density = _normal(y - mean, spread) - math.log(scale.half)
        return Prediction(math.nan, float(density.mean()))
    margin = np.where(y > 0, 1, -1) * mean / np.sqrt(1 + np.pi * variance / 8)
    return Prediction(float((margin > 0).mean()), float(np.log(np.maximum(expit(margin), 1e-300)).mean()))


def _gaussian(x: Array64, found: Laplace, noise: float, unit: float) -> Prediction:
    """Rows ``x ~ N(m, V + s^2 I)``; a raw coordinate has standard deviation one where a design's has ``unit``."""
    inverse = solve_triangular(found.factor, np.eye(len(found.mean)), lower=True)
    factor = np.linalg.cholesky(inverse.T @ inverse + noise**2 * np.eye(len(found.mean)))
    white = solve_triangular(factor, (x - found.mean).T, lower=True)
    lengths = np.square(white).sum(axis=0)
    constant = np.log(np.diag(factor) / unit).sum() + 0.5 * len(found.mean) * math.log(2 * math.pi)
    return Prediction(math.nan, float((-0.5 * lengths - constant).mean()))


def _normal(deviation: Array64, variance: Array64) -> Array64:
    return np.asarray(-0.5 * (np.square(deviation) / variance + np.log(2 * np.pi * variance)))
