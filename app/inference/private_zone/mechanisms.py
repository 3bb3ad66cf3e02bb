"""The private arithmetic: clipping on an integer grid, exact sums, discrete Gaussian noise.

The only module that draws private noise. A contribution ``g`` in R^S is clipped to norm C, divided by ``C / K`` with
``K = 2**24``, and rounded to integers ``k`` with ``sum(k**2) <= K**2`` exactly. Integers sum exactly, in any order,
so that a neighbouring table changes the sum by a vector of norm at most K and nothing else.

Noise is drawn on a finer grid, of m steps to each step of the sums, and rounded to the grid of the sums. Sums are
integers, so ``sum + round(noise / m)`` equals ``round((m sum + noise) / m)``, and this is a function of ``m sum +
noise`` alone. The answer is therefore a post-processing of the sum with the fine noise, and inherits its guarantee.
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
"""In steps of the sums; the number of fine steps to one of these then stays below 2**61."""

_LOSS = 2.0**-22
"""What a sum of squares in single precision may lack, as a share for each value; four times the bound."""

_MAX_SUM = 1 << 61


class BadQuery(ValueError):
    """A query that follows from earlier answers and is no query: it may fail visibly, before a row is touched."""


class NoiseSource(Protocol):
    """Adds noise to exact integer sums."""

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """``sums`` plus independent noise of standard deviation ``scale`` (in grid units), one for all or for each."""


class DiscreteGaussian:
    """Integer discrete Gaussian noise from the operating system's entropy (Canonne, Kamath & Steinke 2020).

    OpenDP draws it in exact arithmetic, at about 10 microseconds a value, whatever the scale. Its 64-bit results
    saturate instead of wrapping around, 64 standard deviations out. It neither clips nor rejects bad input: bounds
    are checked here.
    """

    def __init__(self) -> None:
        import opendp.prelude  # noqa: PLC0415  (the API knows this class, and draws nothing)

        opendp.prelude.enable_features("contrib")
        self._library = opendp.prelude
        self._measurements: dict[float, Any] = {}

    def perturb(self, sums: Integers, scale: float | Array64) -> Integers:
        """``sums`` plus rounded discrete Gaussian noise of scale ``scale``, one for all or for each; in grid units.

        Raises:
            ValueError: for a scale or a sum beyond what 64-bit integers hold with room for noise.
        """
        if sums.dtype != np.int64 or sums.ndim != 1 or bool(np.any(np.abs(sums) > _MAX_SUM)):
            raise ValueError("sums to perturb are a vector of 64-bit integers with room for noise")
        if not isinstance(scale, np.ndarray):
            return sums + self._draw(len(sums), scale)
        if scale.shape != sums.shape:
            raise ValueError("there is a scale of the noise for each sum")
        noised = sums.copy()
        distinct, places = np.unique(scale, return_inverse=True)
        for index, one in enumerate(distinct):
            chosen = places == index
            noised[chosen] += self._draw(int(chosen.sum()), float(one))
        return noised

    def _draw(self, count: int, scale: float) -> Integers:
        """``(count,)`` values of noise of scale ``scale``, rounded to the grid of the sums."""
        steps = choose_fine_steps(scale)
        fine = math.nextafter(scale * steps, math.inf)  # never less noise than is priced
        if fine not in self._measurements:
            library = self._library
            domain = library.vector_domain(library.atom_domain(T="i64"))
            self._measurements[fine] = library.m.make_gaussian(domain, library.l2_distance(T="f64"), scale=fine)
        return round_to_steps(np.asarray(self._measurements[fine]([0] * count), dtype=np.int64), steps)


def choose_fine_steps(scale: float) -> int:
    """Choose how many fine steps make one step of the sums' grid.

    For noise of ``scale`` steps of the sums' grid: the largest odd number that keeps the noise's scale within
    :data:`FINEST_SCALE` fine steps; the scale is then at least three quarters of that. No integer lies in the middle
    between two multiples of an odd number, so rounding needs no rule for ties: it is symmetric, unbiased, and commutes
    with adding an integer.

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


def admissible_clip(clip: float) -> float:
    """``clip``, at least the public floor.

    Raises:
        BadQuery: for a clip that is not finite.
    """
    if not math.isfinite(clip):
        raise BadQuery("a clip is finite")
    return max(clip, CLIP_FLOOR)


def clip_to_grid(values: Array32, present: NDArray[np.bool_], clip: float) -> Array32:
    """Integer contributions ``(n, S)`` of units' ``values`` ``(n, S)`` clipped to norm ``clip``, written over them.

    Every row ``k`` of the result holds integers with ``sum(k**2) <= K**2`` exactly: rows are clipped a little inside
    the ball, and a row that is outside of it after rounding all the same is zeroed. So is a row that is not finite; an
    absent one is scaled by zero, which takes no other time than a present one, so that durations do not count the
    absent. Total: never raises, never warns. Rows may lie in memory one after the other, or their values may (order F).

    The comparison is made in single precision, in which the S squares and their sum lose a share of at most
    ``S 2**-24 / (1 - S 2**-24)`` in any order (Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, section
    3.1): a sum that is found to be at most ``(1 - S 2**-22) K**2`` is at most ``K**2``. Integers up to K are exact.
    """
    length = values.shape[1]
    with np.errstate(all="ignore"):
        radius = GRID * (1 - _margin(length)) - math.sqrt(length) / 2
        scale = np.minimum(radius / np.sqrt(_squares(values)), GRID / clip) * present
        values *= scale.astype(np.float32)[:, None]
        np.rint(values, out=values)
        within = _squares(values) <= np.float32((1 - length * _LOSS) * float(GRID) ** 2)
        zero_rows_unless(values, within)
    return values


def _squares(values: Array32) -> Array32:
    """Squared norms ``(n,)``, each found by the same steps wherever its row lies."""
    found: Array32 = np.einsum("ij,ij->i", values, values)
    return found


def _margin(length: int) -> float:
    """How far inside the ball rows of that many values are clipped, as a share: rounding never takes them out."""
    return max(2.0**-12, length * _LOSS)


def factors_to_grid(factors: Array32, present: NDArray[np.bool_], bound: float) -> Array32:
    """Integer factors ``(n, L)`` of units' ``factors`` scaled to squared norm at most ``bound``, written over them.

    ``present`` ``(n, rows_per_unit)`` says which of the equal parts of a unit's vector are there. Every row ``k`` of
    the result holds integers with ``sum(k**2) <= K`` exactly, on a grid of ``sqrt(bound / K)``; otherwise as
    :func:`clip_to_grid`. Sums of squares of integers below ``K = 2**24`` are exact in single precision, and rounding
    never takes one below ``K`` that is not, so that the comparison is exact.
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
        within = np.vecdot(factors, factors) < np.float32(GRID)
        zero_rows_unless(factors, within)
    return factors


def exact_sum(contributions: Array32) -> Integers:
    """Column sums ``(S,)`` of integer contributions ``(n, S)`` up to K, exact: float64 holds them for n below 2**29."""
    total: Array64 = np.einsum("ij->j", contributions, dtype=np.float64)
    return total.astype(np.int64)
