"""Coordinates in which points are free to move: every position of a chart is a valid set of points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.points import Points
from app.inference.fitting.regions import Region

WEIGHT_SPAN = 5.0
"""Log-weights move this far either way from where they start."""
_TINY = 1e-300

Bounds = Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Positions hold log-weights relative to ``start``'s, then a region's coordinates, then targets that move.

    ``targets`` are their least and largest value; None: they stay as they are in ``start``. No weight exceeds
    ``heaviest``, or its start.
    """

    start: Points
    region: Region
    targets: tuple[float | None, float | None] | None
    heaviest: float = np.inf

    @property
    def bounds(self) -> Bounds:
        """Least and largest value of each coordinate of a position."""
        size = len(self.start.weight)
        tops = np.clip(np.log(self.heaviest) - self._logs(), 0, WEIGHT_SPAN)
        moving = [self.targets] * size if self.targets is not None else []
        return [*((-WEIGHT_SPAN, float(top)) for top in tops), *(list(self.region.bounds) * size), *moving]

    def position(self) -> Array64:
        """That of ``start``, moved into the region."""
        coordinates = self.region.coordinates(self.start.u)
        targets = np.empty(0) if self.targets is None else np.clip(self.start.y, *self.targets)
        return np.concatenate((np.zeros(len(self.start.weight)), coordinates.ravel(), targets))

    def points(self, position: Array64) -> Points:
        """The points there."""
        logs, coordinates, targets = self._parts(position)
        return Points(self.region.rows(coordinates), targets, np.exp(self._logs() + logs))

    def pull_back(self, position: Array64, gradient: Points) -> Array64:
        """The gradient in positions, from the one in design rows, targets and weights."""
        logs, coordinates, _ = self._parts(position)
        by_weight = gradient.weight * np.exp(self._logs() + logs)
        by_row = self.region.pull_back(coordinates, gradient.u).ravel()
        return np.concatenate((by_weight, by_row, np.empty(0) if self.targets is None else gradient.y))

    def _parts(self, position: Array64) -> tuple[Array64, Array64, Array64]:
        size, width = len(self.start.weight), len(self.region.bounds)
        logs, coordinates, targets = np.split(position, [size, size * (1 + width)])
        return logs, coordinates.reshape(size, width), self.start.y if self.targets is None else targets

    def _logs(self) -> Array64:
        return np.asarray(np.log(np.maximum(self.start.weight, _TINY)))
