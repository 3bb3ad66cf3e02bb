"""Descent on ``log(1 + KL)`` in the points themselves, with exact gradients through the mode.

At the mode ``mu`` of the points' posterior, with ``P`` its precision, ``K = P^-1``, ``d = mu - mean`` and
``G = 1/2 (K - K Lambda K)``: the divergence moves by ``tr(G dP) + (Lambda d)'dmu``, and ``P dmu`` is what moves of the
score (implicit differentiation). With one predictor, ``q_m = x_m'G x_m`` and
``e = K (Lambda d + sum_m w_m v'_m q_m x_m)``:

    ``d/dw_m = v q + r x'e``, ``d/dy_m = w (dr/dy) x'e``, ``d/dx_m = w [(v' q - v x'e) mu + 2 v G x + r e]``.

With several, G, mu and e fall into a block for each, and the products become contractions (see
:mod:`app.inference.fitting.bends`). A prior that is not normal has its precision taken as constant here: its part of e
is small.
"""

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.fitting.charts import Chart
from app.inference.fitting.mode import mode_of
from app.inference.fitting.points import Points
from app.inference.fitting.problem import Problem
from app.inference.fitting.target import divergence, inverse_root, is_resolved

_FAILED = 1e3
"""``log(1 + KL)`` of points without a posterior."""
_TOLERANCE = 1e-10
"""Twice the nats that a mode may be off by, relative to the best divergence so far."""
_MOST_FAILURES = 5


def polish(problem: Problem, chart: Chart, iterations: int) -> Points | None:
    """The best points that at most ``iterations`` of L-BFGS find from the chart's start; None if none had a mode."""
    descent = _Descent(problem, chart, problem.target.mean)
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-9}
    with suppress(_Hopeless):
        scipy.optimize.minimize(
            descent, chart.position(), jac=True, method="L-BFGS-B", bounds=chart.bounds, options=options
        )
    return descent.points


class _Hopeless(ArithmeticError):
    """Too many positions without a posterior; looking for a mode there takes longest."""


@dataclass(slots=True)
class _Descent:
    problem: Problem
    chart: Chart
    mode: Array64
    best: float = field(default=float("inf"))
    points: Points | None = None
    failures: int = 0

    def __call__(self, position: Array64) -> tuple[float, Array64]:
        """``log(1 + KL)`` and its gradient at a position of the chart; remembers the best points seen."""
        points = self.chart.points(position)
        value, gradient = self._measure(points)
        moved = np.zeros_like(position) if gradient is None else self.chart.pull_back(position, gradient)
        if not np.isfinite(value) or not np.all(np.isfinite(moved)):
            self.failures += 1
            if self.failures > _MOST_FAILURES:
                raise _Hopeless
            return _FAILED, np.zeros_like(position)
        if value < self.best:
            self.best, self.points = value, points
        return float(np.log1p(value)), moved / (1 + value)

    def _measure(self, points: Points) -> tuple[float, Points | None]:
        model, prior = self.problem.model, self.problem.prior
        scale = 1 + self.best if np.isfinite(self.best) else 1.0
        mode = mode_of(model, points, prior, self.mode, tolerance=_TOLERANCE * scale)
        if mode is None:
            return float("inf"), None
        information = model.expand(model.fold(points.u, points.y), points.weight, mode).information
        posterior = information + prior.precision(mode)
        root = inverse_root(posterior)
        if root is None or not is_resolved(posterior, root):
            return float("inf"), None
        self.mode = mode
        return divergence(mode, root, self.problem.target), divergence_gradient(self.problem, points, mode, root)


def divergence_gradient(problem: Problem, points: Points, mode: Array64, root: Array64) -> Points:
    """The formulas above at the mode ``(D,)``, with ``root'root = K``; each derivative takes its variable's place."""
    u, weight, target, bends = points.u, points.weight[:, None], problem.target, problem.bends
    covariance, blocks = root.T @ root, problem.blocks()
    coefficients = (blocks @ mode).reshape(-1, u.shape[1])
    a = u @ coefficients.T
    bend = bends.at(a, points.y)
    bending = blocks @ (0.5 * (covariance - covariance @ target.precision @ covariance)) @ blocks.T
    bent = np.einsum("aibj,mj->mabi", bending.reshape(*coefficients.shape, *coefficients.shape), u, optimize=True)
    q = np.einsum("mabi,mi->mab", bent, u)
    third = bends.contract(a, points.y, q)
    moved = blocks.T @ ((weight * third).T @ u).ravel()
    e = (blocks @ (covariance @ (target.precision @ (mode - target.mean) + moved))).reshape(coefficients.shape)
    seen = u @ e.T
    along = third - np.einsum("mab,mb->ma", bend.curvature, seen)
    return Points(
        u=weight * (along @ coefficients + 2 * np.einsum("mab,mabi->mi", bend.curvature, bent) + bend.slope @ e),
        y=points.weight * bends.in_target(a, points.y, q, seen),
        weight=np.einsum("mab,mab->m", bend.curvature, q) + np.vecdot(bend.slope, seen),
    )
