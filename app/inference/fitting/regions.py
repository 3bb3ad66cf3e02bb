"""Where design rows may be, as coordinates within boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64

_LEAST_SHARE = 1e-5
_MOST_LOG_ODDS = 12.0


class Region(Protocol):
    """Design rows ``(M, p)`` as coordinates ``(M, len(bounds))``."""

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """The box of one row's coordinates."""

    def coordinates(self, u: Array64) -> Array64:
        """Those of the rows, which are moved into the region if need be."""

    def rows(self, coordinates: Array64) -> Array64:
        """The design rows there."""

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """The gradient in coordinates, from the one in design rows."""


@dataclass(frozen=True, slots=True)
class Open:
    """Everywhere up to ``reach`` in each of the ``width - 1`` coordinates before the intercept."""

    width: int
    reach: float

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """All alike."""
        return [(-self.reach, self.reach)] * (self.width - 1)

    def coordinates(self, u: Array64) -> Array64:
        """All but the intercept."""
        return np.clip(u[:, :-1], -self.reach, self.reach)

    def rows(self, coordinates: Array64) -> Array64:
        """With an intercept of 1."""
        return np.column_stack((coordinates, np.ones(len(coordinates))))

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """All but the intercept's."""
        return gradient[:, :-1]


@dataclass(frozen=True, slots=True)
class Declared:
    """Within declared bounds, the set of :mod:`app.inference.core.bounds`: numbers from -1 to 1, shares of categories.

    ``blocks`` are the places of shares, a slice a categorical column, ``constants`` those of numbers with one value
    only. The coordinates of shares are log-odds to the first category, which has no indicator.
    """

    width: int
    blocks: tuple[slice, ...]
    constants: tuple[int, ...] = ()

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """From -1 to 1 for numbers."""
        return [(-float(most), float(most)) for most in self._box()]

    def coordinates(self, u: Array64) -> Array64:
        """Numbers are clamped; shares become positive, and less than 1 in sum."""
        coordinates, box = u[:, :-1].copy(), self._box()
        for block in self.blocks:
            shares = np.maximum(u[:, block], _LEAST_SHARE)
            rest = np.maximum(1 - shares.sum(axis=1, keepdims=True), _LEAST_SHARE)
            coordinates[:, block] = np.log(shares / rest)
        return np.clip(coordinates, -box, box)

    def rows(self, coordinates: Array64) -> Array64:
        """Shares from log-odds, and the intercept."""
        u = np.column_stack((coordinates, np.ones(len(coordinates))))
        for block in self.blocks:
            u[:, block] = _shares(coordinates[:, block])
        return u

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """Through the shares' derivatives ``diag(s) - s s'``."""
        gradient = gradient[:, :-1].copy()
        for block in self.blocks:
            shares = _shares(coordinates[:, block])
            gradient[:, block] = shares * (gradient[:, block] - np.vecdot(shares, gradient[:, block])[:, None])
        return gradient

    def _box(self) -> Array64:
        box = np.ones(self.width - 1)
        for block in self.blocks:
            box[block] = _MOST_LOG_ODDS
        box[list(self.constants)] = 0.0
        return box


def read_region(design: Design) -> Declared:
    """The region of a design with an intercept."""
    each = list(zip(design.features, design.blocks, strict=True))
    indicators = tuple(block for feature, block in each if feature.type == "categorical" and block.start < block.stop)
    return Declared(design.width, indicators, tuple(block.start for feature, block in each if feature.constant))


def _shares(log_odds: Array64) -> Array64:
    odds = np.exp(log_odds)
    return np.asarray(odds / (1 + odds.sum(axis=1, keepdims=True)))
