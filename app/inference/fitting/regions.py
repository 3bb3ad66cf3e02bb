"""Regions of design rows, with coordinates that range over a box."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64

_LEAST_SHARE = 1e-5
_MOST_LOG_ODDS = 12.0


class Region(Protocol):
    """A set of design rows ``(M, p)``, parametrised by coordinates ``(M, len(bounds))``."""

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """Least and largest value of each coordinate of one row."""

    def coordinates(self, u: Array64) -> Array64:
        """Compute the coordinates of rows ``u``; rows outside the region are moved into it."""

    def rows(self, coordinates: Array64) -> Array64:
        """Compute the design rows at ``coordinates``."""

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """Pull a gradient in design rows back to the coordinates (chain rule)."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box: every coordinate except the intercept is between -``reach`` and ``reach``."""

    width: int
    reach: float

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """The same bounds for each coordinate."""
        return [(-self.reach, self.reach)] * (self.width - 1)

    def coordinates(self, u: Array64) -> Array64:
        """Drop the intercept and clamp the rest."""
        return np.clip(u[:, :-1], -self.reach, self.reach)

    def rows(self, coordinates: Array64) -> Array64:
        """Append an intercept of 1."""
        return np.column_stack((coordinates, np.ones(len(coordinates))))

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """Drop the intercept's gradient."""
        return gradient[:, :-1]


@dataclass(frozen=True, slots=True)
class DeclaredBounds:
    """The declared bounds: intervals of numbers, and shares of categories.

    It is the set of :mod:`app.inference.core.bounds`. ``lower`` and ``upper`` ``(p - 1,)`` bound numbers. ``blocks``
    has the indices of shares, one slice for each categorical column or spline. The coordinates of shares are log-odds
    to the first category or B-spline, which has no column.
    """

    width: int
    blocks: tuple[slice, ...]
    lower: Array64
    upper: Array64

    @property
    def bounds(self) -> Sequence[tuple[float, float]]:
        """The bounds of numbers, and a wide range of log-odds for shares."""
        return [(float(least), float(most)) for least, most in zip(*self._box(), strict=True)]

    def coordinates(self, u: Array64) -> Array64:
        """Clamp numbers, and convert shares to log-odds; shares become positive with a sum below 1."""
        coordinates = u[:, :-1].copy()
        for block in self.blocks:
            shares = np.maximum(u[:, block], _LEAST_SHARE)
            rest = np.maximum(1 - shares.sum(axis=1, keepdims=True), _LEAST_SHARE)
            coordinates[:, block] = np.log(shares / rest)
        return np.clip(coordinates, *self._box())

    def rows(self, coordinates: Array64) -> Array64:
        """Convert log-odds to shares, and append an intercept of 1."""
        u = np.column_stack((coordinates, np.ones(len(coordinates))))
        for block in self.blocks:
            u[:, block] = _compute_shares(coordinates[:, block])
        return u

    def pull_back(self, coordinates: Array64, gradient: Array64) -> Array64:
        """Multiply by the derivatives of the shares, ``diag(s) - s s'``."""
        gradient = gradient[:, :-1].copy()
        for block in self.blocks:
            shares = _compute_shares(coordinates[:, block])
            gradient[:, block] = shares * (gradient[:, block] - np.vecdot(shares, gradient[:, block])[:, None])
        return gradient

    def _box(self) -> tuple[Array64, Array64]:
        lower, upper = self.lower.copy(), self.upper.copy()
        for block in self.blocks:
            lower[block], upper[block] = -_MOST_LOG_ODDS, _MOST_LOG_ODDS
        return lower, upper


def read_region(design: Design) -> DeclaredBounds:
    """Make the declared region of a design with an intercept."""
    return DeclaredBounds(design.width, design.shares, design.lower, design.upper)


def _compute_shares(log_odds: Array64) -> Array64:
    odds = np.exp(log_odds)
    return np.asarray(odds / (1 + odds.sum(axis=1, keepdims=True)))
