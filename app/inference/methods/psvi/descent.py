"""Stochastic descent on ``KL(pi_{u,w} || pi)`` in weights and points.

It is Algorithm 1 of *Bayesian Pseudocoresets* (2020). The lengths and directions of steps follow a schedule
(:mod:`app.inference.methods.steps`). Units need no tuning: the standard deviation of a column, and for weights a
factor or their average.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.bounds import project
from app.inference.core.design import Design
from app.inference.core.model import Array64
from app.inference.methods.psvi.residuals import Points, Residuals
from app.inference.methods.public_table import PublicTable
from app.inference.methods.steps import Schedule
from app.inference.post.optimisers import make_finite, start_adam

_MOST = 100.0
_MOST_LOG = 15.0


@dataclass(frozen=True, slots=True)
class StepGeometry:
    """Units of steps in design rows and targets, and their bounds.

    ``unit`` ``(p,)`` is the unit of each column; a constant column, as the intercept, has unit 0 and does not move.
    Targets stay within the declared bounds, and so do design rows if ``within_bounds``.
    """

    design: Design
    unit: Array64
    target_unit: float
    within_bounds: bool

    def rows(self, u: Array64) -> Array64:
        """Project design rows ``u`` ``(n, p)`` onto the bounds."""
        return project(self.design, u) if self.within_bounds else np.clip(u, -_MOST, _MOST)

    def targets(self, y: Array64) -> Array64:
        """Clamp targets ``y`` ``(n,)`` to the declared bounds."""
        bounds = self.design.target_bounds
        return y if bounds is None else np.clip(y, *bounds)


def make_step_geometry(table: PublicTable, *, within_bounds: bool = False) -> StepGeometry:
    """Make the geometry whose units are the standard deviations of the table's columns."""
    return StepGeometry(table.design, table.spread, table.target_spread, within_bounds)


class WeightScale(Protocol):
    """The scale on which weights take Adam steps."""

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """Convert a gradient in the weights to this scale; both are ``(M,)``."""

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Subtract ``move`` on this scale; the resulting weights are not negative."""


@dataclass(frozen=True, slots=True)
class LinearScale:
    """The linear scale, in multiples of ``unit``; steps end at zero.

    A weight can leave zero, and its growth is linear, which prevents divergence with few rows.
    """

    unit: float

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """Compute the gradient in multiples of the unit."""
        return self.unit * by_weight

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Subtract and clamp at zero."""
        return np.maximum(weights - self.unit * move, 0)


class LogarithmicScale:
    """The logarithmic scale; weights stay positive and finite."""

    def gradient(self, weights: Array64, by_weight: Array64) -> Array64:
        """Compute the gradient in the logarithms."""
        return weights * by_weight

    def step(self, weights: Array64, move: Array64) -> Array64:
        """Multiply by the exponential of the negative move."""
        return np.asarray(weights * np.exp(np.clip(-move, -_MOST_LOG, _MOST_LOG)))


@np.errstate(over="ignore", invalid="ignore")
def descend(
    residuals: Residuals,
    points: Points,
    geometry: StepGeometry,
    scale: WeightScale,
    schedule: Schedule,
    *,
    moving: slice,
    still: int = 0,
) -> Points:
    """Take the steps of ``schedule`` with all weights, and with the points in ``moving``.

    With few points, the posterior may be so narrow that a gradient overflows; it is then clipped.

    Args:
        residuals: make the gradients.
        points: where the descent starts.
        geometry: units and bounds of steps.
        scale: of the weights.
        schedule: the lengths and directions of steps.
        moving: the points that move.
        still: number of first steps in which no point moves.
    """
    u, y, weights = points.u.copy(), points.y.copy(), points.weights
    of_weights, of_u, of_y = start_adam(weights.shape), start_adam(u[moving].shape), start_adam(y[moving].shape)
    for iteration in range(schedule.iterations):
        residual = residuals.at(Points(u, y, weights))
        length = schedule.length(iteration)
        of_weights, by_weight = schedule.turn(of_weights, make_finite(scale.gradient(weights, -residual.own)))
        if len(u[moving]) and iteration >= still:
            move_u, move_y = residual.moves(u[moving], y[moving])
            of_u, by_u = schedule.turn(of_u, make_finite(-weights[moving, None] * geometry.unit * move_u))
            u[moving] = geometry.rows(u[moving] - length * geometry.unit * by_u)
            if move_y is not None:
                of_y, by_y = schedule.turn(of_y, make_finite(-weights[moving] * geometry.target_unit * move_y))
                y[moving] = geometry.targets(y[moving] - length * geometry.target_unit * by_y)
        weights = scale.step(weights, length * by_weight)
    return Points(u, y, weights)
