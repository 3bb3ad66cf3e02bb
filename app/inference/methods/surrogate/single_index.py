"""Labels of rows that are isotropic and normal: what the mean of ``(y - p) (z, 1) / |(z, 1)|`` says of a parameter.

Labels depend on one linear predictor, so that means are integrals over it and the length of what is across it.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy

from app.inference.core.model import Array64, Model
from app.inference.methods.surrogate.isotropy import Isotropic

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_RADII = 7
_PREDICTORS = np.linspace(-3.0, 3.0, 61)
_DIFFERENCE = 0.01
_NEWTON_STEPS, _LONGEST_STEP, _ARRIVED = 25, 0.5, 1e-5
_LEAST_SLOPE, _MOST_SLOPE, _MOST_OFFSET = 0.02, 12.0, 8.0


@dataclass(frozen=True, slots=True, eq=False)
class BinaryResponse:
    """Those of a model whose likelihood follows from one linear predictor, in a design of ``width`` columns."""

    model: Model
    width: int

    def residuals(self, predictor: Array64) -> Array64:
        """Derivatives of the log-likelihood of a label 0 and of a label 1, ``(2, n)``."""
        x = np.zeros((len(predictor), self.width))
        x[:, 0], x[:, -1] = predictor, 1
        first = np.eye(self.width)[0]
        rows = [self.model.fold(x, np.full(len(x), label)).astype(np.float32) for label in (0.0, 1.0)]
        return np.array([self.model.scores(each, first)[:, -1] for each in rows], dtype=np.float64)

    def rate(self, predictor: Array64) -> Array64:
        """``P(1)`` ``(n,)``, since scores have mean zero."""
        zero, one = self.residuals(predictor)
        return np.asarray(-zero / (one - zero))

    def predictor(self, rate: float) -> float:
        """Where ``P(1)`` is ``rate``, within limits."""
        return float(np.interp(rate, self.rate(_PREDICTORS), _PREDICTORS))

    def at(self, predictor: float) -> tuple[float, float]:
        """``p`` at one predictor, and the largest ``|y - p|``."""
        rate = float(self.rate(np.array([predictor]))[0])
        return rate, max(rate, 1 - rate)


@dataclass(frozen=True, slots=True)
class Across:
    """Of one row and a slope across the predictor: what it adds to its own mean, and the row's ``information``.

    ``variance`` is ``E[(y - p)^2]``.
    """

    own: float
    information: float
    variance: float

    def beside_the_mode(self, columns: int) -> float:
        """The variance of a row's part that its score does not share, in all directions together.

        The full table's mode moves with its scores, so that only this sets a sum over the same rows apart from it.
        """
        return max(columns * (self.variance / (columns + 1) - self.own**2 / self.information), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class SingleIndex:
    """Standard normal rows z of ``columns`` coordinates, whose labels have the predictor ``slope z_1 + offset``.

    ``centre`` is p.
    """

    labels: BinaryResponse
    columns: int
    centre: float

    def means(self, slope: float, offset: float) -> Array64:
        """Of ``(y - p) (z_1, 1) / |(z, 1)|``, ``(2,)``."""
        inverse, _ = _inverse_lengths(self.columns)
        residual = _WEIGHTS * (self.labels.rate(offset + slope * _NODES) - self.centre) * inverse
        return np.array([residual @ _NODES, residual.sum()])

    def solved(self, means: Array64) -> tuple[float, float]:
        """Slope and offset of those means, or of means near them where there are none."""
        slope, offset, most = 1.0, 0.0, _LONGEST_STEP
        for _ in range(_NEWTON_STEPS):
            step = np.linalg.pinv(self._jacobian(slope, offset)) @ (means - self.means(slope, offset))
            slope = float(np.clip(slope * np.exp(np.clip(step[0] / slope, -most, most)), _LEAST_SLOPE, _MOST_SLOPE))
            offset = float(np.clip(offset + np.clip(step[1], -most, most), -_MOST_OFFSET, _MOST_OFFSET))
            if not np.any(np.abs(step) > _ARRIVED):
                break
        return slope, offset

    def across(self, slope: float, offset: float) -> Across:
        """What there is to be seen of directions across the predictor."""
        predictor = offset + slope * _NODES
        zero, one = self.labels.residuals(predictor)
        rate, information = -zero / (one - zero), -zero * one
        bend = (self.labels.rate(predictor + _DIFFERENCE) - self.labels.rate(predictor - _DIFFERENCE)) / _DIFFERENCE / 2
        _, squared = _inverse_lengths(self.columns)
        return Across(
            float(_WEIGHTS @ (bend * squared)),
            float(_WEIGHTS @ information),
            float(_WEIGHTS @ rate) * (1 - 2 * self.centre) + self.centre**2,
        )

    def mean_label(self, slope: float, offset: float) -> float:
        """Over all rows."""
        return float(_WEIGHTS @ self.labels.rate(offset + slope * _NODES))

    def spread(self, slope: float, offset: float, rows: Isotropic, variance: float) -> Array64:
        """The covariance ``(2, 2)`` of slope and offset: by ``variance`` in sums, and by count, scale and means."""
        inverse = np.linalg.pinv(self._jacobian(slope, offset))
        counting = rows.uncounted * (inverse @ self.means(slope, offset) - np.array([0.5 * slope, 0.0]))
        own = np.square([slope * rows.unscaled, slope * rows.uncentred])
        return np.asarray(variance / rows.count**2 * inverse @ inverse.T + np.outer(counting, counting) + np.diag(own))

    def _jacobian(self, slope: float, offset: float) -> Array64:
        """Of the means, ``(2, 2)``, by differences: scores are of single precision."""
        up, right = self.means(slope + _DIFFERENCE, offset), self.means(slope, offset + _DIFFERENCE)
        down, left = self.means(slope - _DIFFERENCE, offset), self.means(slope, offset - _DIFFERENCE)
        return np.column_stack([up - down, right - left]) / (2 * _DIFFERENCE)


@cache
def _inverse_lengths(columns: int) -> tuple[Array64, Array64]:
    """``E[1 / |(z, 1)|]`` and ``E[z_2^2 / |(z, 1)|]`` at each node of ``z_1``."""
    rest = scipy.stats.chi2.ppf((np.arange(_RADII) + 0.5) / _RADII, columns - 1)
    inverse = 1 / np.sqrt(np.square(_NODES)[:, None] + rest + 1)
    return inverse.mean(axis=1), (inverse * rest).mean(axis=1) / (columns - 1)
