"""The prior of a release: normal, with given scales or one unknown common factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault.design import DesignColumn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Independent normals with ``scales`` ``(D,)``.

    With ``degrees_of_freedom`` the first ``shared`` parameters are multivariate t instead. The precision of a normal is
    ``1 / scale²``. Under a t it is multiplied by ``(v + d) / (v + q)``, the expected common precision at ``theta``.
    There ``v`` are the degrees of freedom and ``d`` is the number of shared parameters. The sum of their squares, each
    over its squared scale, is ``q``. Newton steps with this precision reach the exact mode.
    """

    scales: Array
    degrees_of_freedom: float | None = None
    shared: int = 0

    def log_density(self, theta: Array) -> float:
        """The log density at ``theta`` ``(D,)``, up to a constant."""
        squares = (theta / self.scales) ** 2
        if self.degrees_of_freedom is None:
            return float(-0.5 * squares.sum())
        v, of_shared = self.degrees_of_freedom, squares[: self.shared].sum()
        return float(-0.5 * ((v + self.shared) * np.log1p(of_shared / v) + squares[self.shared :].sum()))

    def precision(self, theta: Array) -> Array:
        """Precisions ``(D,)``; the gradient is ``-precision * theta``."""
        precision = self.scales**-2.0
        if self.degrees_of_freedom is not None:
            length = ((theta / self.scales)[: self.shared] ** 2).sum()
            precision[: self.shared] *= (self.degrees_of_freedom + self.shared) / (self.degrees_of_freedom + length)
        return precision


def scales_of(
    names: Sequence[str], design: Sequence[DesignColumn], predictors: int, scale: float, scales: Mapping[str, float]
) -> Array:
    """The scale of each parameter in ``names``, ``(D,)``.

    The first ``predictors * p`` parameters are coefficients. A scale for a parameter takes precedence over one for a
    design column, and that one over a scale for a feature. Other coefficients have ``scale``, and other parameters 1.
    """
    result = np.ones(len(names))
    for index, name in enumerate(names):
        keys = [name]
        if index < predictors * len(design):
            column = design[index % len(design)]
            keys += [column.name, column.source or column.name]
            result[index] = scale
        result[index] = next((scales[key] for key in keys if key in scales), result[index])
    return result
