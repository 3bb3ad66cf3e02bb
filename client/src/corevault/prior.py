"""The prior of a release: normal, with given scales or one unknown common factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault.design import DesignColumn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientPrior:
    """Independent normals with ``mean`` and ``scales``, both ``(D,)``.

    With ``degrees_of_freedom`` the first ``shared`` parameters are multivariate t instead. The precision of a normal is
    ``1 / scale²``. Under a t it is multiplied by ``(v + d) / (v + q)``, the expected common precision at ``theta``.
    There ``v`` are the degrees of freedom and ``d`` is the number of shared parameters. The sum of their squared
    distances from the mean, each over its squared scale, is ``q``. Newton steps with this precision reach the exact
    mode.
    """

    scales: Array
    degrees_of_freedom: float | None = None
    shared: int = 0
    mean: Array | float = 0.0

    def log_density(self, theta: Array) -> float:
        """The log density at ``theta`` ``(D,)``, up to a constant."""
        squares = ((theta - self.mean) / self.scales) ** 2
        if self.degrees_of_freedom is None:
            return float(-0.5 * squares.sum())
        v, of_shared = self.degrees_of_freedom, squares[: self.shared].sum()
        return float(-0.5 * ((v + self.shared) * np.log1p(of_shared / v) + squares[self.shared :].sum()))

    def precision(self, theta: Array) -> Array:
        """Precisions ``(D,)``; the gradient is ``-precision * (theta - mean)``."""
        precision = self.scales**-2.0
        if self.degrees_of_freedom is not None:
            length = (((theta - self.mean) / self.scales)[: self.shared] ** 2).sum()
            precision[: self.shared] *= (self.degrees_of_freedom + self.shared) / (self.degrees_of_freedom + length)
        return precision


def scales_of(
    names: Sequence[str], design: Sequence[DesignColumn], predictors: int, scale: float, scales: Mapping[str, float]
) -> Array:
    """The scale of each parameter in ``names``, ``(D,)``.

    The first ``predictors * p`` parameters are coefficients. Those without a separate scale have ``scale``, and other
    parameters 1.
    """
    result = np.ones(len(names))
    result[: predictors * len(design)] = scale
    return _override(result, names, design, predictors, scales)


def means_of(
    names: Sequence[str], design: Sequence[DesignColumn], predictors: int, means: Mapping[str, float]
) -> Array:
    """The prior mean of each parameter in ``names``, ``(D,)``; zero without a stated one."""
    return _override(np.zeros(len(names)), names, design, predictors, means)


def _override(
    values: Array, names: Sequence[str], design: Sequence[DesignColumn], predictors: int, stated: Mapping[str, float]
) -> Array:
    """Replace ``values`` ``(D,)`` by stated ones.

    A value for a parameter takes precedence over one for a design column, and that one over a value for a feature.
    """
    for index, name in enumerate(names):
        keys = [name]
        if index < predictors * len(design):
            column = design[index % len(design)]
            keys += [column.name, column.term or column.source or column.name]
        values[index] = next((stated[key] for key in keys if key in stated), values[index])
    return values
