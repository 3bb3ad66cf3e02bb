"""Exact residuals of a Gaussian mean under a normal prior.

With noise ``s^2 I`` and a diagonal prior, the posterior's covariance ``V`` is diagonal for all points. At its mean
``mu``, ``R(mu + d) = g'd - b |d|^2 / 2`` with ``b = (N - sum_m w_m) / s^2`` and
``g = (sum_n (x_n - mu) - sum_m w_m (u_m - mu)) / s^2``, so

    ``Cov[f(x), R] = (x - mu)'Vg / s^2 + b tr(V^2) / (2 s^2)``  and  ``Cov[grad f(x), R] = Vg / s^2``.

Only the number and the sum of the data are needed, so one pass over the table suffices. A step costs O(M d). Source:
Bayesian Pseudocoresets, 2020, supplement C.1.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.core.priors import NormalPrior
from app.inference.methods.psvi.residuals import Points, standardise
from app.inference.methods.public_table import PublicTable


@dataclass(frozen=True, slots=True)
class GaussianMeanResidual:
    """A residual at ``points`` ``(M, p)``.

    ``mean`` ``(p,)`` and ``variances`` ``(p,)`` are the posterior's; ``pull`` is ``Vg`` and ``missing`` is b.
    """

    noise: float
    mean: Array64
    variances: Array64
    pull: Array64
    missing: float
    points: Array64

    @property
    def own(self) -> Array64:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        return self._covariance(self.points)

    def _covariance(self, x: Array64) -> Array64:
        curvature = 0.5 * self.missing * float(self.variances @ self.variances)
        return np.asarray((x @ self.pull - self.mean @ self.pull + curvature) / self.noise**2)

    def correlation(self, x: Array64, y: Array64) -> Array64:
        """See :class:`app.inference.methods.psvi.residuals.Residual`."""
        spread = np.square(x - self.mean) @ self.variances + 0.5 * float(self.variances @ self.variances)
        return standardise(self._covariance(x), spread / self.noise**4)

    def moves(self, u: Array64, y: Array64) -> tuple[Array64, Array64 | None]:
        """See :class:`app.inference.methods.psvi.residuals.Residual`; the same for every point."""
        return np.broadcast_to(self.pull / self.noise**2, u.shape), None


class GaussianMeanResiduals:
    """Residuals from the number and the sum of the data."""

    starting_share = 1.0

    def __init__(self, noise: float, prior: NormalPrior, table: PublicTable) -> None:
        """Sum the rows of ``table`` in one pass."""
        self._noise, self._precision = noise, prior.scales**-2.0
        self._pull = self._precision * prior.mean
        self._count, self._sum = table.count, np.zeros(table.design.width)
        for x, _ in table.chunks():
            self._sum += x.sum(axis=0, dtype=np.float64)

    def at(self, points: Points) -> GaussianMeanResidual:
        """Make the exact residual at ``points``."""
        total, of_points = float(points.weights.sum()), points.weights @ points.u
        variances = 1 / (self._precision + total / self._noise**2)
        mean = variances * (self._pull + of_points / self._noise**2)
        force = (self._sum - of_points - (self._count - total) * mean) / self._noise**2
        missing = (self._count - total) / self._noise**2
        return GaussianMeanResidual(self._noise, mean, variances, variances * force, missing, points.u)

    def on(self, points: Points, x: Array64, y: Array64) -> GaussianMeanResidual:
        """Make the exact residual at ``points``; ``x, y`` are not needed."""
        return self.at(points)
