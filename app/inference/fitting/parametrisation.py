"""Unconstrained-in-a-box parametrisation of weighted points for descent."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region

WEIGHT_SPAN = 5.0
"""Largest change of a log-weight, in either direction."""
_TINY = 1e-300

Bounds = Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class Parametrisation:
    """A map from positions, vectors within ``bounds``, to valid sets of points.

    A position holds the log-weights relative to ``start``, then the coordinates of design rows in ``region``, then the
    targets if they may change. ``targets`` are their least and largest value; None: they stay as in ``start``. No
    weight exceeds the larger of ``heaviest`` and its start.
    """

    start: Points
    region: Region
    targets: tuple[float | None, float | None] | None
    heaviest: float = np.inf

    @property
    def bounds(self) -> Bounds:
        """Least and largest value of each coordinate of a position."""
        size = len(self.start.weight)
        tops = np.clip(np.log(self.heaviest) - self._log_weights(), 0, WEIGHT_SPAN)
        moving = [self.targets] * size if self.targets is not None else []
        return [*((-WEIGHT_SPAN, float(top)) for top in tops), *(list(self.region.bounds) * size), *moving]

    def position(self) -> Array64:
        """Compute the position of ``start``, projected into the region."""
        coordinates = self.region.coordinates(self.start.u)
        targets = np.empty(0) if self.targets is None else np.clip(self.start.y, *self.targets)
        return np.concatenate((np.zeros(len(self.start.weight)), coordinates.ravel(), targets))

    def points(self, position: Array64) -> Points:
        """Compute the points at ``position``."""
        logs, coordinates, targets = self._split(position)
        return Points(self.region.rows(coordinates), targets, np.exp(self._log_weights() + logs))

    def pull_back(self, position: Array64, gradient: Points) -> Array64:
        """Pull a gradient in the points back to the position (chain rule)."""
        logs, coordinates, _ = self._split(position)
        by_weight = gradient.weight * np.exp(self._log_weights() + logs)
        by_row = self.region.pull_back(coordinates, gradient.u).ravel()
        return np.concatenate((by_weight, by_row, np.empty(0) if self.targets is None else gradient.y))

    def _split(self, position: Array64) -> tuple[Array64, Array64, Array64]:
        size, width = len(self.start.weight), len(self.region.bounds)
        logs, coordinates, targets = np.split(position, [size, size * (1 + width)])
        return logs, coordinates.reshape(size, width), self.start.y if self.targets is None else targets

    def _log_weights(self) -> Array64:
        return np.asarray(np.log(np.maximum(self.start.weight, _TINY)))
