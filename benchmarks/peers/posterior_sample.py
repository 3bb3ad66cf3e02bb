"""One posterior sample: the exponential mechanism on a clipped log-likelihood (Wang, Fienberg & Smola 2015).

A row's log-likelihood is raised to at least ``-bound``, so it has the range ``bound`` over all parameters. A draw from
the prior times the likelihood to the power ``epsilon / bound`` is epsilon-DP under zero-out: a row multiplies both the
density and its integral by a factor between ``e^-epsilon`` and 1. The draw comes from a Markov chain, which is treated
as exact. The release is a point estimate.

Setting: ``bound``, at least log 2.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from app.inference.core.model import Array64
from benchmarks.peers.problem import Belief, Problem, Settings, compute_scores

GRID: Final = {"bound": (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)}
_STEPS: Final = 60
_MOVES: Final = 60
_MIXING: Final = 0.5
"""The share of a move that is new (preconditioned Crank-Nicolson)."""


class Target(NamedTuple):
    """The density to draw from: the prior times the clipped likelihood to a power."""

    problem: Problem
    bound: float
    power: float

    def evaluate(self, theta: Array64) -> float:
        """Compute the log density up to a constant."""
        margin = self.problem.x @ theta * (2 * self.problem.y - 1)
        likelihood = np.maximum(-np.logaddexp(0, -margin), -self.bound).sum()
        return float(self.power * likelihood - self.problem.precision / 2 * theta @ theta)


def release(problem: Problem, epsilon: float, settings: Settings, rng: np.random.Generator) -> Belief:
    """Release one draw."""
    target = Target(problem, settings["bound"], epsilon / settings["bound"])
    mode, factor = find_mode(target)

    def draw() -> Array64:
        return np.asarray(np.linalg.solve(factor.T, rng.standard_normal(len(mode))))

    def compute_excess(shift: Array64) -> float:
        """Compute the log density at ``mode + shift`` less that of the normal approximation."""
        white = factor.T @ shift
        return target.evaluate(mode + shift) + float(white @ white) / 2

    shift = draw()
    excess = compute_excess(shift)
    for _ in range(_MOVES):
        proposal = math.sqrt(1 - _MIXING**2) * shift + _MIXING * draw()
        new = compute_excess(proposal)
        if math.log(rng.random()) < new - excess:
            shift, excess = proposal, new
    return Belief(mode + shift)


def find_mode(target: Target) -> tuple[Array64, Array64]:
    """Find a mode, and the lower factor of the precision there."""
    problem, bound, power = target
    theta, prior = np.zeros(problem.parameters), problem.precision * np.eye(problem.parameters)
    value, factor = target.evaluate(theta), prior
    for _ in range(_STEPS):
        residual, variance = compute_scores(problem.x, problem.y, theta)
        inside = np.abs(residual) < -math.expm1(-bound)  # log p > -bound
        gradient = power * problem.x.T @ (residual * inside) - problem.precision * theta
        precision = power * (problem.x * (variance * inside)[:, None]).T @ problem.x + prior
        factor, length = np.asarray(np.linalg.cholesky(precision)), 1.0
        step = np.linalg.solve(precision, gradient)
        while (new := target.evaluate(theta + length * step)) < value and length > 1e-3:
            length /= 2
        if new <= value + 1e-6:
            break
        theta, value = theta + length * step, new
    return theta, factor
