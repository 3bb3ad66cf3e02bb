"""DP-GD: gradient descent on all rows, with bounded scores and Gaussian noise in every step.

Settings: ``whiten``, ``clip`` and ``weigh`` as in :mod:`benchmarks.peers.newton`; ``steps``; ``rate``, the step in
units of the inverse number of rows. The second half of the iterates is averaged. The release is a point estimate.
"""

import math
from typing import Final

import numpy as np

from benchmarks.peers.bounded_sums import compute_factors, whiten
from benchmarks.peers.gaussian_privacy import compute_mu
from benchmarks.peers.problem import Belief, Problem, Settings, compute_scores

GRID: Final = {
    "steps": (40.0, 150.0),
    "rate": (2.0, 6.0),
    "whiten": (0.2,),
    "clip": (0.5, 1.0),
    "weigh": (0.0, 1.0),
}


def release(problem: Problem, epsilon: float, settings: Settings, rng: np.random.Generator) -> Belief:
    """Release the mean of the second half of the iterates."""
    budget, root, unit = compute_mu(epsilon, problem.delta) ** 2, np.eye(problem.parameters), problem.norm
    if settings["whiten"] > 0:
        root = whiten(problem, math.sqrt(settings["whiten"] * budget), rng)
        budget, unit = budget * (1 - settings["whiten"]), math.sqrt(problem.parameters)
    z, prior, clip = problem.x @ root, problem.precision * root.T @ root, settings["clip"] * unit
    steps, lengths = int(settings["steps"]), np.sqrt(np.vecdot(z, z))
    sigma, first = compute_noise(budget, steps, clip), steps // 2
    rate = settings["rate"] / (problem.rows + settings["rate"] * float(np.linalg.norm(prior, 2)))
    phi, total = np.zeros(problem.parameters), np.zeros(problem.parameters)
    for number in range(steps):
        residual, _ = compute_scores(z, problem.y, phi)
        factors = compute_factors(lengths, residual, clip, weigh=settings["weigh"] > 0)
        gradient = z.T @ (factors * residual) + sigma * rng.standard_normal(len(phi))
        phi = phi + rate * (gradient - prior @ phi)
        total += phi * (number >= first)
    return Belief(root @ total / (steps - first))


def compute_noise(budget: float, steps: int, clip: float) -> float:
    """Compute the standard deviation of each step's noise from a squared budget."""
    return clip * math.sqrt(steps / budget)
