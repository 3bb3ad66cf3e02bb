"""Stochastic descent on ``KL(pi_{u,w} || pi)`` in weights and points (Bayesian Pseudocoresets, 2020, Algorithm 1).

The paper's steps decay as 1/t and leave their scale to tuning. Here every coordinate takes Adam's steps, of about unit
size, in units that need none (the spread of a column, a factor or the average of a weight), with cosine decay to zero.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.bounds import project
from app.inference.core.design import Design
from app.inference.core.model import Array64
from app.inference.methods.psvi.residuals import Points, Residuals
from app.inference.methods.public_table import PublicTable
from app.inference.post.optimisers import adam_init, adam_step, cosine_decay, finite

_MOST = 100.0
_MOST_LOG = 15.0


@dataclass(frozen=True, slots=True)
class StepGeometry:
    """Where points move: what a step of one is in design rows ``(p,)`` and in targets, and where they must stay.

    A column that never varies, as the intercept, stays as it is. Design rows stay within the declared bounds if
    ``within_bounds`` says so, targets always do.
    """

    design: Design
    unit: Array64
    target_unit: float
    within_bounds: bool

    def rows(self, u: Array64) -> Array64:
        """``u`` ``(n, p)``, brought back."""
        return project(self.design, u) if self.within_bounds else np.clip(u, -_MOST, _MOST)

    def targets(self, y: Array64) -> Array64:
        """``y`` ``(n,)``, brought back."""
        bounds = self.design.target_bounds
        return y if bounds is None else np.clip(y, *bounds)


def make_step_geometry(table: PublicTable, *, within_bounds: bool = False) -> StepGeometry:
    """Steps in the table's own spreads."""
    return StepGeometry(table.design, table.spread, table.target_spread, within_bounds)


class WeightScale(Protocol):
    """The scale that weights take Adam's steps on."""

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """The gradient on this scale, of one in the weights; both ``(M,)``."""

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Non-negative weights, after subtracting ``move`` on this scale."""


@dataclass(frozen=True, slots=True)
class LinearScale:
    """In ``unit``; steps end at zero. A weight can come from nothing, and cannot run away: few rows invite it to."""

    unit: float

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """Adam does not see a constant factor."""
        return by_weight

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Projected."""
        return np.maximum(weights - self.unit * move, 0)


class LogarithmicScale:
    """Weights stay positive, and finite."""

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """That in the logarithms."""
        return weights * by_weight

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Multiplied."""
        return np.asarray(weights * np.exp(np.clip(-move, -_MOST_LOG, _MOST_LOG)))


@np.errstate(over="ignore", invalid="ignore")
def descend(
    residuals: Residuals,
    points: Points,
    geometry: StepGeometry,
    scale: WeightScale,
    *,
    moving: slice,
    rate: float,
    iterations: int,
) -> Points:
    """``iterations`` steps of all weights, and of the points in ``moving``.

    Few points can leave a posterior so narrow that a gradient overflows: its direction still counts.
    """
    u, y, weights = points.u.copy(), points.y.copy(), points.weights
    of_weights, of_u, of_y = adam_init(weights.shape), adam_init(u[moving].shape), adam_init(y[moving].shape)
    for iteration in range(iterations):
        residual = residuals.at(Points(u, y, weights))
        decayed = rate * cosine_decay(iteration, iterations)
        of_weights, by_weight = adam_step(of_weights, finite(scale.gradient(weights, -residual.own)))
        if len(u[moving]):
            move_u, move_y = residual.moves(u[moving], y[moving])
            of_u, by_u = adam_step(of_u, finite(-weights[moving, None] * move_u))
            u[moving] = geometry.rows(u[moving] - decayed * geometry.unit * by_u)
            if move_y is not None:
                of_y, by_y = adam_step(of_y, finite(-weights[moving] * move_y))
                y[moving] = geometry.targets(y[moving] - decayed * geometry.target_unit * by_y)
        weights = scale.step(weights, decayed * by_weight)
    return Points(u, y, weights)
