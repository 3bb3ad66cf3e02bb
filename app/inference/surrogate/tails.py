"""How columns' tails look, from noised answers: which rows a population has that a normal one has not.

A column's variance may sit in few rows: those of a rare level, or of large amounts. They are the ones that bounds take
most from, and whose labels become certain first. How much of its variance lies beyond some deviations tells how far out
such rows lie and thereby how many there are, and the winsorised mean on which side. Together they tell whether there
are but two values (:mod:`app.inference.surrogate.two_valued`).
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.protocol import Array64
from app.inference.questions.tails import FAR, NEAR, OF_SIDES
from app.inference.surrogate.two_valued import USUAL, Winsorisations, two_valued

DRAWS: Final = 4096
_NORMAL = NormalDist()
_OF_NORMAL = 2 * (NEAR * _NORMAL.pdf(NEAR) + (1 - NEAR**2) * _NORMAL.cdf(-NEAR))
"""The share of a normal column's variance that winsorising at :data:`NEAR` takes."""
_OF_NORMAL_ROWS = 0.33
"""Root mean square of what a normal row adds to the question, per column."""
_LEAST, _MOST = 0.03, 0.99
"""Share of the variance beyond NEAR that counts as a tail, and that is believed at most."""
_DEVIATIONS, _MISTAKEN = 2.5, 0.05
"""How far it has to stand out of noise, and how likely noise alone may make a tail in one of a table's columns."""
_UNUSUAL = 0.3
"""How uncertain what lies beyond FAR is where noise hides it, over what lies beyond NEAR."""
_ALONE = 0.8
"""Of the variance, to be all of it."""
_ONE_SIDED = 0.3
"""Beyond which a column that is all tail has it on one side only; means that bounds took from hide half of it."""
_OPEN = 0.5
"""Of a column's variance, that may be a tail and does not stand out of noise: then it may be a level unseen."""
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
    column so open that it may be a level unseen.
    """

    share: Array64
    distance: Array64
    side: Array64
    draws: Array64
    clear: bool

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
            if len(sides) > 1 and abs(self.side[column]) > _ONE_SIDED:
                sides = [int(np.sign(self.side[column]))]
            for side in sides:
                step = side * (rooms[side] if len(sides) == 1 else min(reach, rooms[side]))
                found.append(np.clip(mean + step * _following(covariance, deviation, int(column)), least, most))
        return np.array(found).reshape(-1, len(mean))

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


def clip_of_tails(columns: int) -> float:
    """Twice the root mean square of what normal rows add, or what is added by one that is far out in one column."""
    return float(max(2 * _OF_NORMAL_ROWS * np.sqrt(columns), np.sqrt(2 + OF_SIDES**2)))


@dataclass(frozen=True, slots=True, eq=False)
class Winsorised:
    """Noised sums ``answer`` ``(3, k)`` over ``count`` rows, as :class:`app.inference.questions.TailSum` has them.

    ``noise`` is the standard deviation of each sum, ``uncertain`` ``(k,)`` that of the columns' variances, relative.
    """

    answer: Array64
    count: float
    noise: float
    uncertain: Array64

    def tails(self, rng: np.random.Generator) -> Tails | None:
        """None where no column has tails beyond noise."""
        share, distance, side = self._found()
        if not np.any(share):
            return None
        clear = bool(np.all(self._hidden() <= _OPEN))
        return Tails(share, distance, side, _draws(rng, share, distance, side), clear)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Columns ``(k,)`` whose tail does not stand out of noise, though most of their variance may be one."""
        return np.asarray((self._hidden() > _OPEN) & (self._found()[0] == 0))

    def _hidden(self) -> Array64:
        """The largest share of the variance ``(k,)`` beyond NEAR that noise may hide."""
        error = np.hypot(NEAR**2 * self.noise / self.count, self.uncertain)
        return np.asarray(max(_DEVIATIONS, -_NORMAL.inv_cdf(_MISTAKEN / len(error))) * error)

    def _found(self) -> tuple[Array64, Array64, Array64]:
        """Share, distance and side as the answer tells them, the share zero where that may be noise."""
        near, far, sides = self.answer / self.count * np.array([NEAR**2, FAR**2, NEAR / OF_SIDES])[:, None]
        errors = np.hypot(np.array([NEAR**2, FAR**2])[:, None] * self.noise / self.count, self.uncertain)
        beyond = 1 - (near / (1 - _OF_NORMAL))
        seen = (beyond > _LEAST) & (beyond > self._hidden())
        beyond = np.clip(beyond, _LEAST, _MOST)
        squared = _squared_distance(beyond, _further(beyond, 1 - far, errors[1]))
        share = np.clip(beyond / (1 - NEAR**2 / squared), 0.0, 1.0)
        of_sides = NEAR / OF_SIDES * self.noise / self.count
        two = two_valued(Winsorisations(near, far, sides, errors[0], errors[1], of_sides))
        squared = np.where(two.found, two.distance**2, squared)
        share = np.where(two.found | (share > _ALONE), 1.0, share)
        side = -sides / np.maximum(share / squared * (np.sqrt(squared) - NEAR), _TINY)
        one_sided = (share == 1) & (np.abs(side) > _ONE_SIDED)
        side = np.where(one_sided, np.sign(side), np.clip(side, -1.0, 1.0))
        return np.where(seen, share, 0.0), np.sqrt(squared), side


def _further(beyond: Array64, found: Array64, error: Array64) -> Array64:
    """The share beyond FAR, ``(k,)``: as ``found``, or where noise hides it as it usually is."""
    usual, spread = USUAL * beyond**2, _UNUSUAL * beyond
    weight = spread**2 / (spread**2 + error**2)
    return np.clip(weight * found + (1 - weight) * usual, 0.0, 0.98 * beyond)


def _squared_distance(beyond: Array64, further: Array64) -> Array64:
    """At which both shares are those of rows at one distance: ``share (1 - NEAR^2 / d^2)``, and the same of FAR.

    Between 5 and 31 deviations: nearer ones look the same, and further ones lie below all noise.
    """
    return np.asarray((beyond * FAR**2 - further * NEAR**2) / (beyond - further))


def _draws(rng: np.random.Generator, share: Array64, distance: Array64, side: Array64) -> Array64:
    """Normal bodies and tails at one distance from the mean; made uncorrelated, of mean 0 and variance 1."""
    found = rng.standard_normal((DRAWS, len(share))) * np.sqrt(1 - share)
    for column in np.flatnonzero(share):
        rare = share[column] / (distance[column] ** 2 + share[column] * side[column] ** 2)
        rows = rng.permutation(DRAWS)[: max(1, round(DRAWS * rare))]
        above = np.arange(len(rows)) < round(len(rows) * (1 + side[column]) / 2)
        found[rows, column] = np.where(above, distance[column], -distance[column])
    found -= found.mean(axis=0)
    values, vectors = np.linalg.eigh(found.T @ found / DRAWS)
    return np.asarray(found @ (vectors / np.sqrt(np.maximum(values, _LEAST_EIGENVALUE))) @ vectors.T)
