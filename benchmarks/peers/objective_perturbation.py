"""Objective perturbation with Gaussian noise (Kifer, Smith & Thakurta 2012; Redberg, Koskela & Wang 2023).

The release is the minimiser of ``sum f + ridge / 2 |theta|^2 + b' theta`` with ``b ~ N(0, sigma^2 I)``, found to
machine precision. Let the loss of a row have gradients of at most the norm L and Hessians of at most the norm S. In
logistic regression, the direction and the sign of a row's gradient do not depend on the parameters. So the privacy loss
is at most that of ``N(L, sigma^2)`` against ``N(0, sigma^2)``, plus ``log(1 + S / ridge)`` from the Jacobian.

Settings: ``clip``, the bound L in units of the longest row; ``weigh``, 1 to bound by weights, 0 to scale long rows
down; ``ridge``, the precision added to the prior's. The release is a point estimate.
"""

import math
from typing import Final

import numpy as np

from app.inference.core.model import Array64
from benchmarks.peers.gaussian_privacy import compute_mu
from benchmarks.peers.problem import Belief, Problem, Settings, compute_scores, shrink_rows

GRID: Final = {
    "clip": (0.25, 0.5, 0.75, 1.0),
    "weigh": (0.0, 1.0),
    "ridge": (0.3, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0),
}
_STEPS: Final = 100


def release(problem: Problem, epsilon: float, settings: Settings, rng: np.random.Generator) -> Belief:
    """Release the minimiser of the perturbed objective.

    Raises:
        ValueError: the ridge is too small for this epsilon.
    """
    clip, ridge = settings["clip"] * problem.norm, settings["ridge"] + problem.precision
    x, weights, longest = problem.x, np.ones(problem.rows), clip
    if settings["weigh"] > 0:
        weights, longest = np.minimum(1, clip / np.sqrt(np.vecdot(x, x))), problem.norm
    else:
        x = shrink_rows(x, clip)
    sigma = compute_noise(epsilon, problem.delta, clip, clip * longest / 4, ridge)
    return Belief(minimise(x, problem.y, weights, ridge, sigma * rng.standard_normal(problem.parameters)))


def compute_noise(epsilon: float, delta: float, gradient: float, hessian: float, ridge: float) -> float:
    """Compute the standard deviation of the linear term."""
    left = epsilon - math.log1p(hessian / ridge)
    if left <= 0:
        raise ValueError("the ridge is too small for this epsilon")
    return gradient / compute_mu(left, delta)


def minimise(x: Array64, y: Array64, weights: Array64, ridge: float, tilt: Array64) -> Array64:
    """Minimise the perturbed negative log posterior by damped Newton steps."""
    theta = np.zeros(x.shape[1])

    def evaluate(at: Array64) -> float:
        eta = x @ at
        return float(weights @ (np.logaddexp(0, eta) - y * eta) + ridge / 2 * at @ at + tilt @ at)

    value = evaluate(theta)
    for _ in range(_STEPS):
        residual, variance = compute_scores(x, y, theta)
        gradient = x.T @ (weights * residual) - ridge * theta - tilt
        step = np.linalg.solve((x * (weights * variance)[:, None]).T @ x + ridge * np.eye(len(theta)), gradient)
        decrement, length = float(gradient @ step), 1.0
        if decrement < 1e-9:
            break
        while (new := evaluate(theta + length * step)) > value - 0.1 * length * decrement and length > 1e-6:
            length /= 2
        theta, value = theta + length * step, new
    return theta
