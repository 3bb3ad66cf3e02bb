"""L-BFGS descent on ``log(1 + KL)`` in the points.

Gradients come from implicit differentiation of the mode.

Let ``mu`` be the mode of the points' posterior, ``P`` its precision, ``K = P^-1``, ``d = mu - mean`` and ``G = 1/2 (K
- K Lambda K)``, with ``Lambda`` the target's precision. The differential of the divergence is ``tr(G dP) + (Lambda
d)'dmu``, and ``P dmu`` is the differential of the score. With one predictor, ``q_m = x_m'G x_m`` and
``e = K (Lambda d + sum_m w_m v'_m q_m x_m)``:

    ``d/dw_m = v q + r x'e``, ``d/dy_m = w (dr/dy) x'e``, ``d/dx_m = w [(v' q - v x'e) mu + 2 v G x + r e]``.

With several predictors, G, mu and e have one block for each, and the products become contractions (see
:mod:`app.inference.fitting.potential_derivatives`). The precision of a prior that is not normal is treated as constant
here, because its part of e is small.
"""

from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.fitting.mode import find_mode
from app.inference.fitting.parametrisation import Parametrisation
from app.inference.fitting.points import Points
from app.inference.fitting.problem import FitProblem
from app.inference.fitting.target import compute_divergence, compute_inverse_root, is_well_conditioned

_FAILED = 1e3
"""Objective for points whose posterior has no mode."""
_TOLERANCE = 1e-10
"""Twice the error of a mode in nats, relative to the best divergence so far."""
_MOST_FAILURES = 5


def minimise_divergence(problem: FitProblem, parametrisation: Parametrisation, iterations: int) -> Points | None:
    """Minimise the divergence by at most ``iterations`` of L-BFGS.

    Returns:
        The best points, or None if no points had a mode.
    """
    descent = _Descent(problem, parametrisation, problem.target.mean)
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 20, "ftol": 1e-10, "gtol": 1e-9}
    with suppress(_TooManyFailures):
        scipy.optimize.minimize(
            descent,
            parametrisation.position(),
            jac=True,
            method="L-BFGS-B",
            bounds=parametrisation.bounds,
            options=options,
        )
    return descent.points


class _TooManyFailures(ArithmeticError):
    """Too many positions have no mode; the search for one takes longest there."""


@dataclass(slots=True)
class _Descent:
    problem: FitProblem
    parametrisation: Parametrisation
    mode: Array64
    best: float = field(default=float("inf"))
    points: Points | None = None
    failures: int = 0

    def __call__(self, position: Array64) -> tuple[float, Array64]:
        """Compute ``log(1 + KL)`` and its gradient at ``position``, and remember the best points."""
        points = self.parametrisation.points(position)
        value, gradient = self._measure(points)
        slope = np.zeros_like(position) if gradient is None else self.parametrisation.pull_back(position, gradient)
        if not np.isfinite(value) or not np.all(np.isfinite(slope)):
            self.failures += 1
            if self.failures > _MOST_FAILURES:
                raise _TooManyFailures
            return _FAILED, np.zeros_like(position)
        if value < self.best:
            self.best, self.points = value, points
        return float(np.log1p(value)), slope / (1 + value)

    def _measure(self, points: Points) -> tuple[float, Points | None]:
        model, prior = self.problem.model, self.problem.prior
        scale = 1 + self.best if np.isfinite(self.best) else 1.0
        mode = find_mode(model, points, prior, self.mode, tolerance=_TOLERANCE * scale)
        if mode is None:
            return float("inf"), None
        information = model.expand(model.fold(points.u, points.y), points.weight, mode).information
        posterior = information + prior.precision(mode)
        root = compute_inverse_root(posterior)
        if root is None or not is_well_conditioned(posterior, root):
            return float("inf"), None
        self.mode = mode
        return compute_divergence(mode, root, self.problem.target), compute_divergence_gradient(
            self.problem, points, mode, root
        )


def compute_divergence_gradient(problem: FitProblem, points: Points, mode: Array64, root: Array64) -> Points:
    """Compute the gradient of the divergence by the formulas of the module's docstring.

    Args:
        problem: gives the target and the derivatives of the potentials.
        points: M points.
        mode: of their posterior, ``(D,)``.
        root: with ``root'root = K``, ``(D, D)``.

    Returns:
        The derivatives in rows, targets and weights, each in the place of its variable.
    """
    u, weight, target, derivatives = points.u, points.weight[:, None], problem.target, problem.derivatives
    covariance, blocks = root.T @ root, problem.blocks()
    coefficients = (blocks @ mode).reshape(-1, u.shape[1])
    a = u @ coefficients.T
    local = derivatives.at(a, points.y)
    slope, curvature = local.slope, local.curvature
    g = blocks @ (0.5 * (covariance - covariance @ target.precision @ covariance)) @ blocks.T
    g_x = np.einsum("aibj,mj->mabi", g.reshape(*coefficients.shape, *coefficients.shape), u, optimize=True)
    q = np.einsum("mabi,mi->mab", g_x, u)
    third = derivatives.contract(a, points.y, q)
    by_third = blocks.T @ ((weight * third).T @ u).ravel()
    e = (blocks @ (covariance @ (target.precision @ (mode - target.mean) + by_third))).reshape(coefficients.shape)
    x_e = u @ e.T
    along = third - np.einsum("mab,mb->ma", curvature, x_e)
    return Points(
        u=weight * (along @ coefficients + 2 * np.einsum("mab,mabi->mi", curvature, g_x) + slope @ e),
        y=points.weight * derivatives.differentiate_in_target(a, points.y, q, x_e),
        weight=np.einsum("mab,mab->m", curvature, q) + np.vecdot(slope, x_e),
    )
