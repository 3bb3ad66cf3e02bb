"""Exact residuals of linear regression with known noise under a normal prior.

They follow from Gaussian moments of order four. With ``f(x, y) = -(y - theta'x)^2 / (2 s^2)``, the posterior of
weighted points is ``N(mu, V)``. At ``mu``,
``R(mu + d) = g'd - d'Bd / 2`` with ``B = (sum_n x x' - sum_m w_m u u') / s^2`` and ``g = (sum_n x e - sum_m w_m u e)
/ s^2`` for residuals ``e = y - mu'x``. Odd and even powers of d are uncorrelated, so

    ``Cov[f(x, y), R] = (e x'Vg + x'VBVx / 2) / s^2``,
    ``Cov[grad_x f, R] = (e Vg - (x'Vg) mu + VBVx) / s^2``  and  ``Cov[df/dy, R] = x'Vg / s^2``.

Only the second moments of the data are needed: one pass, and memory for p^2 numbers.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from app.inference.core.model import Array64
from app.inference.core.priors import NormalPrior
from app.inference.methods.psvi.residuals import Points, standardise
from app.inference.methods.public_table import PublicTable
from app.inference.models.linear import LinearRegression


@dataclass(frozen=True, slots=True)
class LinearResidual:
    """A residual at weighted points.

    ``mean`` is ``(p,)``, ``factor`` the lower Cholesky factor of ``V^-1``, ``pull`` is ``Vg``, ``missing`` is B, and
    ``own`` has the covariances ``(M,)`` of the points.
    """

    model: LinearRegression
    mean: Array64
    factor: Array64
    pull: Array64
    missing: Array64
    own: Array64

    def correlation(self, x: Array64, y: Array64) -> Array64:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        errors = y - x @ self.mean
        across = _solve(self.factor, x)
        lengths, precision = np.vecdot(x, across), self.model.noise**-2
        covariance = precision * (errors * (x @ self.pull) + 0.5 * np.vecdot(across, across @ self.missing))
        return standardise(covariance, precision**2 * (np.square(errors) * lengths + 0.5 * np.square(lengths)))

    def moves(self, u: Array64, y: Array64) -> tuple[Array64, Array64 | None]:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        errors, along = y - u @ self.mean, u @ self.pull
        curved = _solve(self.factor, _solve(self.factor, u) @ self.missing)
        by_point = np.outer(errors, self.pull) - np.outer(along, self.mean) + curved
        return by_point / self.model.noise**2, along / self.model.noise**2


class LinearResiduals:
    """Residuals from the second moments of the data, in the model's coordinates."""

    starting_share = 1.0

    def __init__(self, model: LinearRegression, prior: NormalPrior, table: PublicTable) -> None:
        """Sum the second moments of ``table`` in one pass."""
        self._model, self._precision = model, np.diag(prior.scales**-2.0)
        self._pull = self._precision @ prior.mean
        self._moments = np.zeros((model.row_width, model.row_width))
        for x, y in table.chunks():
            rows = model.fold(x.astype(np.float64), y)
            self._moments += rows.T @ rows

    def at(self, points: Points) -> LinearResidual:
        """Make the exact residual at ``points``."""
        model, p = self._model, self._model.width
        rows = model.fold(points.u, points.y)
        of_points = rows.T @ (rows * points.weights[:, None])
        left = (self._moments - of_points) / model.noise**2
        factor, _ = scipy.linalg.lapack.dpotrf(self._precision + of_points[:p, :p] / model.noise**2, lower=1, clean=1)
        mean = _solve(factor, (self._pull + of_points[p, :p] / model.noise**2)[None, :])[0]
        pull = _solve(factor, (left[p, :p] - left[:p, :p] @ mean)[None, :])[0]
        across, errors = _solve(factor, points.u), rows[:, p] - points.u @ mean
        own = errors * (points.u @ pull) + 0.5 * np.vecdot(across, across @ left[:p, :p])
        return LinearResidual(model, mean, factor, pull, left[:p, :p], own / model.noise**2)

    def on(self, points: Points, x: Array64, y: Array64) -> LinearResidual:
        """Make the exact residual at ``points``; ``x, y`` are not needed."""
        return self.at(points)


def _solve(factor: Array64, rows: Array64) -> Array64:
    """Compute ``rows @ V`` with ``V^-1 = L L'``."""
    solution, _ = scipy.linalg.lapack.dpotrs(factor, rows.T, lower=1)
    return np.asarray(solution).T
