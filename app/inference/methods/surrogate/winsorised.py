"""From winsorised squares and means of columns, noised, to their tails.

How much of a column's variance lies beyond some deviations tells how far out rows lie that hold it, and thereby how
many there are; the winsorised mean tells on which side. GroupCommit they tell whether there are but two values
(:mod:`app.inference.methods.surrogate.two_valued`); mean and variance may have told so before
(:mod:`app.inference.methods.surrogate.flags`).
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.methods.surrogate.flags import Flags
from app.inference.methods.surrogate.tails import ONE_SIDED, Tails, drawn
from app.inference.methods.surrogate.two_valued import USUAL, Winsorisations, two_valued
from app.inference.private_zone.queries.tails import FAR, NEAR, OF_SIDES

_NORMAL = NormalDist()
_OF_NORMAL = 2 * (NEAR * _NORMAL.pdf(NEAR) + (1 - NEAR**2) * _NORMAL.cdf(-NEAR))
"""The share of a normal column's variance that winsorising at :data:`NEAR` takes."""
_OF_NORMAL_ROWS = 0.33
"""Root mean square of what a normal row adds to the query, per column."""
_LEAST, _MOST = 0.03, 0.99
"""Share of the variance beyond NEAR that counts as a tail, and that is believed at most."""
_DEVIATIONS, _MISTAKEN = 2.5, 0.05
"""How far it has to stand out of noise, and how likely noise alone may make a tail in one of a table's columns."""
_UNUSUAL = 0.3
"""How uncertain what lies beyond FAR is where noise hides it, over what lies beyond NEAR."""
_ALONE = 0.8
"""Of the variance, to be all of it."""
_OPEN = 0.5
"""Of a column's variance, that may be a tail and does not stand out of noise: then it may be a level unseen."""
_MOST_APART = 3.0
"""Errors by which sums may differ from what a flag's are."""
_ROUNDED = 0.01
"""The same where there is no noise."""
_TINY = 1e-9


def clip_of_tails(columns: int) -> float:
    """Twice the root mean square of what normal rows add, or what is added by one that is far out in one column."""
    return float(max(2 * _OF_NORMAL_ROWS * np.sqrt(columns), np.sqrt(2 + OF_SIDES**2)))


class Told(NamedTuple):
    """Of k columns, ``(k,)`` each, as
    :class:`app.inference.methods.surrogate.tails.Tails` has them; no share: no tail.
    """

    share: Array64
    distance: Array64
    side: Array64


@dataclass(frozen=True, slots=True, eq=False)
class Winsorised:
    """Noised sums ``answer`` ``(3, k)`` over ``count`` rows, as
    :class:`app.inference.private_zone.queries.TailSum` has them.

    ``noise`` is the standard deviation of each sum, ``uncertain`` ``(k,)`` that of the columns' variances, relative.
    ``flags`` are columns that seem to have but two values, whatever these sums say.
    """

    answer: Array64
    count: float
    noise: float
    uncertain: Array64
    flags: Flags | None = None

    def tails(self, rng: np.random.Generator) -> Tails | None:
        """None where no column has tails beyond noise."""
        told = self._told()
        if not np.any(told.share):
            return None
        clear = bool(np.all(self._hidden() <= _OPEN))
        amounts, two = (told.share > 0) & (told.share < 1), two_valued(self._said)
        return Tails(*told, drawn(rng, *told), clear, np.where(amounts & two.possible, two.distance, 0.0))

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """Columns ``(k,)`` whose tail does not stand out of noise, though most of their variance may be one."""
        return np.asarray((self._hidden() > _OPEN) & (self._told().share == 0))

    def _hidden(self) -> Array64:
        """The largest share of the variance ``(k,)`` beyond NEAR that noise may hide."""
        error = self._said.near_error
        return np.asarray(max(_DEVIATIONS, -_NORMAL.inv_cdf(_MISTAKEN / len(error))) * error)

    @property
    def _said(self) -> Winsorisations:
        """The sums as means of columns, and what these are off."""
        near, far, sides = self.answer / self.count * np.array([NEAR**2, FAR**2, NEAR / OF_SIDES])[:, None]
        errors = np.hypot(np.array([NEAR**2, FAR**2])[:, None] * self.noise / self.count, self.uncertain)
        return Winsorisations(near, far, sides, errors[0], errors[1], NEAR / OF_SIDES * self.noise / self.count)

    def _told(self) -> Told:
        """Share, distance and side as the answer tells them, the share zero where that may be noise."""
        said = self._said
        beyond = 1 - (said.near / (1 - _OF_NORMAL))
        seen = (beyond > _LEAST) & (beyond > self._hidden())
        beyond = np.clip(beyond, _LEAST, _MOST)
        squared = _squared_distance(beyond, _further(beyond, 1 - said.far, said.far_error))
        share = np.clip(beyond / (1 - NEAR**2 / squared), 0.0, 1.0)
        two = two_valued(said)
        squared = np.where(two.found, two.distance**2, squared)
        share = np.where(two.found | (share > _ALONE), 1.0, share)
        side = -said.mean / np.maximum(share / squared * (np.sqrt(squared) - NEAR), _TINY)
        one_sided = (share == 1) & (np.abs(side) > ONE_SIDED)
        side = np.where(one_sided, np.sign(side), np.clip(side, -1.0, 1.0))
        return self._with_flags(Told(np.where(seen, share, 0.0), np.sqrt(squared), side))

    def _with_flags(self, told: Told) -> Told:
        """Columns that have two values, where these sums do not say otherwise."""
        if self.flags is None:
            return told
        said, (found, distance, side) = self._said, self.flags
        expected = np.where(distance > NEAR, (1 + NEAR**2) / (1 + distance**2), 1.0)
        near_error, far_error = (np.hypot(_ROUNDED, error) for error in (said.near_error, said.far_error))
        apart = np.maximum(np.abs(said.near - expected) / near_error, np.abs(said.far - 1) / far_error)
        flag = found & (apart < _MOST_APART)
        return Told(
            np.where(flag, 1.0, told.share), np.where(flag, distance, told.distance), np.where(flag, side, told.side)
        )


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
