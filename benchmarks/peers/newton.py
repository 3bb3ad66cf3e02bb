"""Noisy Newton: bounded gradients and Hessians, each with Gaussian noise (after Ganesh et al. 2023).

Settings:

- ``steps``, and ``hessian``, the share of a step's budget for its Hessian; squared budgets double from step to step;
- ``whiten``, the share of the whole budget for second moments, whose inverse root whitens the rows;
- ``clip``, the norm of a score, in units of the longest row or, after whitening, of the root of D;
- ``weigh``, 1 to bound scores by weights instead of clipping.
"""

import math
from typing import Final

import numpy as np

from benchmarks.peers.bounded_sums import compute_factors, draw_symmetric, lift_eigenvalues, sum_hessians, whiten
from benchmarks.peers.gaussian_privacy import compute_mu
from benchmarks.peers.problem import Belief, Problem, Settings, compute_scores

GRID: Final = {
    "steps": (3.0, 5.0, 8.0),
    "hessian": (0.1, 0.3),
    "whiten": (0.0, 0.2),
    "clip": (0.5, 1.0, 2.0),
    "weigh": (0.0, 1.0),
}


def release(problem: Problem, epsilon: float, settings: Settings, rng: np.random.Generator) -> Belief:
    """Release the last iterate, with the last noised Hessian plus the prior as precision."""
    budget, root, unit = compute_mu(epsilon, problem.delta) ** 2, np.eye(problem.parameters), problem.norm
    if settings["whiten"] > 0:
        root = whiten(problem, math.sqrt(settings["whiten"] * budget), rng)
        budget, unit = budget * (1 - settings["whiten"]), math.sqrt(problem.parameters)
    z, prior, clip = problem.x @ root, problem.precision * root.T @ root, settings["clip"] * unit
    lengths, limit = np.sqrt(np.vecdot(z, z)), clip**2 / 4
    phi, precision = np.zeros(problem.parameters), prior
    for mu, hessian_mu in split_budget(budget, settings):
        residual, variance = compute_scores(z, problem.y, phi)
        factors = compute_factors(lengths, residual, clip, weigh=settings["weigh"] > 0)
        gradient = z.T @ (factors * residual) + clip / mu * rng.standard_normal(len(phi))
        sigma = limit / hessian_mu
        hessian = sum_hessians(z, variance, factors if settings["weigh"] > 0 else np.ones(len(z)), limit)
        values, vectors = lift_eigenvalues(hessian + draw_symmetric(rng, len(phi), sigma), sigma)
        precision = (vectors * values) @ vectors.T + prior
        phi = phi + np.linalg.solve(precision, gradient - prior @ phi)
    back = np.linalg.inv(root)
    return Belief(root @ phi, back.T @ precision @ back)


def split_budget(budget: float, settings: Settings) -> list[tuple[float, float]]:
    """Split a squared budget into the mu of gradient and Hessian of each step."""
    shares = 2.0 ** np.arange(settings["steps"])
    shares *= budget / shares.sum()
    hessian = settings["hessian"]
    return [(math.sqrt((1 - hessian) * share), math.sqrt(hessian * share)) for share in shares]
