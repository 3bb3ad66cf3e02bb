"""Private arithmetic: clipping on an integer grid, exact sums, discrete Gaussian noise.

This is the only module that draws private noise. A contribution ``g`` in R^S is clipped to norm C, divided by ``C /
K`` with ``K = 2**24``, and rounded to integers ``k`` with ``sum(k**2) <= K**2`` exactly. Integers sum exactly, in any
order. So the sums of two neighbouring tables differ by a vector of norm at most K.

Noise is drawn on a finer grid, of m steps to each step of the sums, and rounded to the grid of the sums. Sums are
integers, so ``sum + round(noise / m)`` equals ``round((m sum + noise) / m)``. This is a function of ``m sum + noise``
alone. The answer is therefore a post-processing of the sum with the fine noise, and inherits its guarantee.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64
from app.inference.core.query import Integers
from app.inference.private_zone.rowwise import zero_rows_unless
from app.privacy.discretisation import FINEST_SCALE

GRID_BITS = 24
GRID = 1 << GRID_BITS
CLIP_FLOOR = 1e-6
MAX_SCALE = 1e9
"""The largest noise multiplier of a query."""

_LEAST_SCALE = 2.0**-4
"""The smallest scale of the noise in steps of the sums; the number of fine steps in one then stays below 2**61."""

_LOSS = 2.0**-22
"""Largest relative error of a sum of squares in single precision, per value; four times the proven bound."""

_MAX_SUM = 1 << 61


class BadQuery(ValueError):
    """A query is malformed or not the planned one.

    A query follows from earlier answers only, so this error may be visible. It is raised before any row is read.
    """


class NoiseSource(Protocol):
    """A source of noise for exact integer sums."""

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """Add independent noise of standard deviation ``scale`` to ``sums``.

        ``scale`` is in grid units, one number for all sums or one for each.
        """


class DiscreteGaussian:
    """Integer discrete Gaussian noise from the operating system's entropy (Canonne, Kamath & Steinke 2020).

    OpenDP draws it in exact arithmetic, in about 10 microseconds for each value at any scale. Its 64-bit results
    saturate instead of wrapping around, 64 standard deviations from zero. It neither clips nor rejects bad input, so
    bounds are checked here.
    """

    def __init__(self) -> None:
        import opendp.prelude  # noqa: PLC0415  (the API imports this module, but draws no noise)

        opendp.prelude.enable_features("contrib")
        self._library = opendp.prelude
        self._measurements: dict[float, Any] = {}

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """Add rounded discrete Gaussian noise of scale ``scale`` to ``sums``.

        ``scale`` is in grid units, one number for all sums or one for each.

        Raises:
            ValueError: if a scale is out of range, or a sum so large that noise could overflow 64-bit integers.
        """
        if sums.dtype != np.int64 or sums.ndim != 1 or bool(np.any(np.abs(sums) > _MAX_SUM)):
            raise ValueError("sums must be a vector of 64-bit integers with room for noise")
        if not isinstance(scale, np.ndarray):
            return sums + self._draw(len(sums), scale)
        if scale.shape != sums.shape:
            raise ValueError("there must be one scale of the noise for each sum")
        noised = sums.copy()
        distinct, places = np.unique(scale, return_inverse=True)
        for index, one in enumerate(distinct):
            chosen = places == index
            noised[chosen] += self._draw(int(chosen.sum()), float(one))
        return noised

    def _draw(self, count: int, scale: float) -> Integers:
        """Draw ``(count,)`` values of noise, rounded to the grid of the sums."""
        steps = choose_fine_steps(scale)
        fine = math.nextafter(scale * steps, math.inf)  # never less noise than the price assumes
        if fine not in self._measurements:
            library = self._library
            domain = library.vector_domain(library.atom_domain(T="i64"))
            self._measurements[fine] = library.m.make_gaussian(domain, library.l2_distance(T="f64"), scale=fine)
        return round_to_steps(np.asarray(self._measurements[fine]([0] * count), dtype=np.int64), steps)


def choose_fine_steps(scale: float) -> int:
    """Choose how many fine steps make one step of the sums' grid.

    For noise of ``scale`` steps of the sums' grid, it is the largest odd number that keeps the noise's scale within
    :data:`FINEST_SCALE` fine steps; the scale is then at least three quarters of that. No integer is halfway between
    two multiples of an odd number, so rounding has no ties. It is symmetric, unbiased, and commutes with adding an
    integer.

    Raises:
        ValueError: for a scale out of range.
    """
    if not (math.isfinite(scale) and _LEAST_SCALE <= scale <= MAX_SCALE * GRID):
        raise ValueError("the scale of the noise is out of range")
    steps = int(FINEST_SCALE / scale)
    return steps - 1 + steps % 2


def round_to_steps(noise: Integers, steps: int) -> Integers:
    """Divide ``noise`` by ``steps`` (odd) and round to the nearest integer; total on 64-bit integers."""
    quotient, remainder = np.divmod(noise, steps)
    return quotient + (remainder > steps // 2)


def raise_clip(clip: float) -> float:
    """Raise ``clip`` to the public floor :data:`CLIP_FLOOR`, if it is lower.

    Raises:
        BadQuery: for a clipping norm that is not finite.
    """
    if not math.isfinite(clip):
        raise BadQuery("a clipping norm must be finite")
    return max(clip, CLIP_FLOOR)


def clip_to_grid(values: Array32, present: NDArray[np.bool_], clip: float) -> Array32:
    """Clip units' ``values`` ``(n, S)`` and round them to the grid, in place.

    Every row ``k`` of the result holds integers with ``sum(k**2) <= K**2`` exactly. Rows are clipped to norm ``clip``,
    slightly inside the ball. A row that is outside of it after rounding is set to zero, and so is a row that is not
    finite. An absent row is scaled by zero. That takes the same time as for a present row, so durations do not reveal
    the number of absent rows. Total: it never raises or warns. The array may have C or Fortran order.

    The comparison is in single precision. The S squares and their sum have a relative error of at most ``S 2**-24 / (1
    - S 2**-24)`` in any order. So a sum that is computed as at most ``(1 - S 2**-22) K**2`` is at most ``K**2``.
    Integers up to K are exact. Source: Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, section 3.1.
    """
    length = values.shape[1]
    with np.errstate(all="ignore"):
        radius = GRID * (1 - _margin(length)) - math.sqrt(length) / 2
        scale = np.minimum(radius / np.sqrt(_squared_norms(values)), GRID / clip) * present
        values *= scale.astype(np.float32)[:, None]
        np.rint(values, out=values)
        is_inside = _squared_norms(values) <= np.float32((1 - length * _LOSS) * float(GRID) ** 2)
        zero_rows_unless(values, is_inside)
    return values


def _squared_norms(values: Array32) -> Array32:
    """Compute squared norms ``(n,)``, by the same steps for every row."""
    norms: Array32 = np.einsum("ij,ij->i", values, values)
    return norms


def _margin(length: int) -> float:
    """Relative margin by which rows are clipped inside the ball, for rounding."""
    return max(2.0**-12, length * _LOSS)


def scale_factors_to_grid(factors: Array32, present: NDArray[np.bool_], bound: float) -> Array32:
    """Scale units' ``factors`` ``(n, L)`` and round them to a grid, in place.

    ``present`` ``(n, rows_per_unit)`` marks the present ones of the equal parts of a unit's vector. The squared norm
    is scaled to at most ``bound``. Every row ``k`` of the result holds integers with ``sum(k**2) <= K`` exactly, on a
    grid of ``sqrt(bound / K)``; otherwise as :func:`clip_to_grid`. The comparison is exact: sums of squares of integers
    below ``K = 2**24`` are exact in single precision, and a larger sum is never rounded below ``K``.
    """
    with np.errstate(all="ignore"):
        if present.shape[1] > 1:
            parts = factors.reshape(*present.shape, -1)
            parts *= present[:, :, None]
        side = math.sqrt(GRID)
        radius = max(side * (1 - _margin(1)) - math.sqrt(factors.shape[1]) / 2, 0.0)
        norm = np.sqrt(np.vecdot(factors, factors))
        scale = np.minimum(radius / norm, side / math.sqrt(bound)) * present.any(axis=1)
        factors *= scale.astype(np.float32)[:, None]
        np.rint(factors, out=factors)
        is_inside = np.vecdot(factors, factors) < np.float32(GRID)
        zero_rows_unless(factors, is_inside)
    return factors


def compute_exact_sum(contributions: Array32) -> Integers:
    """Compute exact column sums ``(S,)`` of integer contributions ``(n, S)`` up to K.

    Float64 holds them exactly for n below 2**29.
    """
    total: Array64 = np.einsum("ij->j", contributions, dtype=np.float64)
    return total.astype(np.int64)
