"""The prior of a release: normal, with known scales or one unknown common factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault.design import DesignColumn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Independent normals of ``scales`` ``(D,)``; with ``degrees_of_freedom`` the first ``shared`` are multivariate t.

    The precision is ``1 / scale²``, times ``(v + d) / (v + q)`` under a t with ``v`` degrees of freedom, ``d`` shared
    parameters and ``q`` the squared length of theirs over their scales: what is expected of the common precision at
    ``theta``. Newton steps with it climb to the exact mode.
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
    """The scale of each parameter in ``names``, of which the first ``predictors * p`` are coefficients.

    A scale by parameter outdoes one by design column, and that one by feature; ``scale`` is for the rest, and 1 for
    parameters that are no coefficients.
    """
    found = np.ones(len(names))
    for index, name in enumerate(names):
        keys = [name]
        if index < predictors * len(design):
            column = design[index % len(design)]
            keys += [column.name, column.source or column.name]
            found[index] = scale
        found[index] = next((scales[key] for key in keys if key in scales), found[index])
    return found
