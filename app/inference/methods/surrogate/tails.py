"""Columns' tails: which rows a population has that a normal one has not.

A column's variance may sit in few rows: those of a rare level, or of large amounts. They are the ones that bounds take
most from, and whose labels become certain first.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.private_zone.queries.tails import FAR

DRAWS: Final = 4096
ONE_SIDED: Final = 0.3
"""Beyond which a column that is all tail has it on one side only; means that bounds took from hide half of it."""
_OF_REACH = 0.5
"""Of the way to where a tail seems to be that there must be before the bound, for it to be on that side."""
_COMMON = 0.3
"""The correlation from which a column varies with a level; smaller ones of few rows are mostly noise."""
_LEAST_EIGENVALUE = 1e-3
_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Of k columns, ``(k,)`` each: ``share`` of their variance, ``distance`` in deviations, ``side`` from -1 to 1.

    ``draws`` ``(n, k)`` are uncorrelated, of mean 0 and variance 1, and have them. ``clear``: whether noise leaves no
    column so open that it may be a level unseen. ``perhaps`` ``(k,)`` is the distance of the rarer value where columns
    that count as amounts may have but two, for all that noise tells; else 0.
    """

    share: Array64
    distance: Array64
    side: Array64
    draws: Array64
    clear: bool
    perhaps: Array64 | float = 0.0

    @property
    def levels(self) -> NDArray[np.bool_]:
        """Which columns are all tail far out: levels of few rows, ``(k,)``."""
        return np.asarray((self.share == 1) & (self.distance >= FAR))

    def level_rows(self, mean: Array64, covariance: Array64, least: Array64, most: Array64) -> Array64:
        """A row ``(k,)`` for each level, and each side that it may be on.

        Levels on one side only are at the bound, ``least`` or ``most`` ``(k,)``, as indicators are; all other columns
        are at their ``mean``, or where the level takes them, if they clearly vary with it.
        """
        found = []
        deviation = np.sqrt(np.maximum(covariance.diagonal(), 0))
        for column in np.flatnonzero(self.levels):
            reach = self.distance[column] * deviation[column]
            rooms = {1: most[column] - mean[column], -1: mean[column] - least[column]}
            sides = [side for side in rooms if rooms[side] >= _OF_REACH * reach] or [max(rooms, key=rooms.__getitem__)]
            if len(sides) > 1 and abs(self.side[column]) > ONE_SIDED:
                sides = [int(np.sign(self.side[column]))]
            for side in sides:
                step = side * (rooms[side] if len(sides) == 1 else min(reach, rooms[side]))
                found.append(np.clip(mean + step * _following(covariance, deviation, int(column)), least, most))
        return np.array(found).reshape(-1, len(mean))

    def rarer_values(self, mean: Array64, deviation: Array64, least: Array64) -> tuple[Array64, NDArray[np.bool_]]:
        """A row ``(k,)`` for each that a column has, or may have, on each side that it may be on; and which are known.

        That column is at ``least`` ``(k,)`` or 1 at most, and all others at their ``mean``.
        """
        perhaps = np.broadcast_to(self.perhaps, self.share.shape)
        rows, known = [], []
        for column in np.flatnonzero((self.share == 1) | (perhaps > 0)):
            reach = (perhaps[column] or self.distance[column]) * deviation[column]
            for side in (-1, 1) if abs(self.side[column]) <= ONE_SIDED else (int(np.sign(self.side[column])),):
                row = mean.copy()
                row[column] = np.clip(mean[column] + side * reach, least[column], 1.0)
                rows.append(row)
                known.append(not perhaps[column])
        return np.array(rows).reshape(-1, len(mean)), np.array(known, dtype=np.bool_)

    def longest(self, deviation: Array64, change: float) -> Array64:
        """``(k,)`` by what a coefficient may move where only few rows have the column at all, which see ``change``."""
        reach = self.distance * np.maximum(deviation, _TINY)
        return np.where(self.levels, change / reach, np.inf)

    def others(self, mean: Array64, deviation: Array64) -> Array64:
        """``(k,)``: the value of rows that are not far out."""
        return mean - self.side * self.share * deviation / self.distance


def _following(covariance: Array64, deviation: Array64, column: int) -> Array64:
    """By what columns ``(k,)`` change with one of them; by nothing where little of either is common, and noise most."""
    slopes = covariance[:, column] / np.maximum(deviation[column] ** 2, _TINY**2)
    common = covariance[:, column] / np.maximum(deviation * deviation[column], _TINY**2)
    slopes = np.where(np.abs(common) > _COMMON, slopes, 0.0)
    slopes[column] = 1.0
    return slopes


def drawn(rng: np.random.Generator, share: Array64, distance: Array64, side: Array64) -> Array64:
    """``(n, k)`` normal bodies and tails at one distance from the mean; made uncorrelated, of mean 0, variance 1."""
    found = rng.standard_normal((DRAWS, len(share))) * np.sqrt(1 - share)
    for column in np.flatnonzero(share):
        rare = share[column] / (distance[column] ** 2 + share[column] * side[column] ** 2)
        rows = rng.permutation(DRAWS)[: max(1, round(DRAWS * rare))]
        above = np.arange(len(rows)) < round(len(rows) * (1 + side[column]) / 2)
        found[rows, column] = np.where(above, distance[column], -distance[column])
    found -= found.mean(axis=0)
    values, vectors = np.linalg.eigh(found.T @ found / DRAWS)
    return np.asarray(found @ (vectors / np.sqrt(np.maximum(values, _LEAST_EIGENVALUE))) @ vectors.T)
