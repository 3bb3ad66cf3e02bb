"""What each point has to be along the linear predictor, before anything else about it is known.

With ``c_m = w_m v_m``, ``rho_m = r_m / v_m`` and ``a_m`` the predictor of point m, exactness asks five numbers only
(n, the mean ``centre`` and the standard deviation ``spread`` of the predictor come from the information, ``g0`` and
``g1`` from the prior's pull):

    ``sum c = n``, ``sum c a = n centre``, ``sum c (a - centre)^2 = n spread^2``,
    ``sum c rho = g0``, ``sum c rho a = g1``.

Every other coordinate follows by a frame (:mod:`app.inference.fitting.frames`). For labels three kinds of points do:
the rarer label at ``a``, the other at ``a +- delta``, three unknowns (a, delta, the rarer label's score) in three
equations; failing that, both labels at each of ``centre +- spread``, in closed form.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array64
from app.inference.fitting.links import Link

FARTHEST = 30.0
"""Predictors beyond are refused: weights grow like the exponential of them."""
_RESIDUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Moments:
    """The right-hand sides above."""

    n: float
    centre: float
    spread: float
    g0: float
    g1: float


@dataclass(frozen=True, slots=True)
class Scalars:
    """Predictor, mass ``c`` and ``rho`` of each point, each ``(M,)``.

    ``ratio`` None: whatever ``rho`` is least, which is a matter of the frame.
    """

    a: Array64
    mass: Array64
    ratio: Array64 | None


def solve_labelled(link: Link, moments: Moments, size: int) -> Scalars | None:
    """Labelled points with these moments; None where there are none within reach."""
    if not abs(moments.centre) + moments.spread <= FARTHEST or size < 2:
        return None
    with np.errstate(all="ignore"):
        return _pairs(link, moments, size, 0.0) if moments.spread == 0 else _search(link, moments, size)


def solve_unlabelled(moments: Moments, size: int, squares: float | None = None) -> Scalars | None:
    """Points of equal mass at two predictors, targets to follow; ``squares`` is ``sum c rho^2`` where that matters."""
    if not abs(moments.centre) + moments.spread <= FARTHEST:
        return None
    upper = np.arange(size) % 2 == 0
    high = (size + 1) // 2
    low = size - high
    steps: Array64 = np.where(upper, np.sqrt(low / high), -np.sqrt(high / max(low, 1)))
    mass = np.full(size, moments.n / size)
    ratio = None if squares is None else _of_length(moments, steps, squares)
    return Scalars(moments.centre + moments.spread * steps, mass, ratio)


def _of_length(moments: Moments, steps: Array64, squares: float) -> Array64:
    """``rho`` with the wanted moments and ``sum c rho^2 = squares``, or as near as that can be."""
    lean = (moments.g1 - moments.centre * moments.g0) / moments.spread if moments.spread > 0 else 0.0
    ratio = (moments.g0 + lean * steps) / moments.n
    pattern = np.where(np.arange(len(steps)) // 2 % 2 == 0, 1.0, -1.0) + 0.1 * np.cos(np.arange(len(steps)))
    basis, _ = np.linalg.qr(np.column_stack((np.ones_like(steps), steps)))
    pattern -= basis @ (basis.T @ pattern)
    left = squares - moments.n * float(np.mean(np.square(ratio)))
    length = float(np.mean(np.square(pattern))) * moments.n
    return np.asarray(ratio + pattern * np.sqrt(max(left, 0.0) / length) if length > 1e-9 * moments.n else ratio)


def _search(link: Link, moments: Moments, size: int) -> Scalars | None:
    found = _triple(link, moments, size) if size >= 3 else None
    return found or (_pairs(link, moments, size, moments.spread) if size >= 4 else None)


def _ratio(link: Link, a: Array64, y: Array64) -> Array64:
    curve = link.curve(a, y)
    return np.asarray(curve.slope / curve.curvature)


def _pairs(link: Link, moments: Moments, size: int, spread: float) -> Scalars | None:
    """Both labels at each of ``centre +- spread`` (at ``centre`` alone for a spread of zero)."""
    steps = np.array([1.0, -1.0]) if spread > 0 else np.array([0.0])
    locations = moments.centre + spread * steps
    tilt = (moments.g1 - moments.centre * moments.g0) / (moments.n * spread) if spread > 0 else 0.0
    wanted = moments.g0 / moments.n + tilt * steps
    up, down = _ratio(link, locations, np.ones_like(locations)), _ratio(link, locations, np.zeros_like(locations))
    share = (wanted - down) / (up - down)
    masses = np.concatenate((share, 1 - share)) * moments.n / len(locations)
    labels = np.repeat([1.0, 0.0], len(locations))
    return _spread_out(link, np.tile(locations, 2), labels, masses, size)


def _triple(link: Link, moments: Moments, size: int) -> Scalars | None:
    up, down = np.abs(_ratio(link, np.full(2, moments.centre), np.array([1.0, 0.0])))
    rarer = 1.0 if down <= up else 0.0
    sign = 1.0 if rarer else -1.0
    share = min(up, down) / (up + down)
    labels = np.array([rarer, 1 - rarer, 1 - rarer])

    def kinds(unknown: Array64) -> tuple[Array64, Array64]:
        a, delta = moments.centre + moments.spread * unknown[0], moments.spread * np.exp(unknown[1])
        score = moments.n * np.exp(unknown[2])
        rest, lean = score - sign * moments.g0, sign * (a * moments.g0 - moments.g1) / delta
        locations = np.array([a, a + delta, a - delta])
        scores = np.array([score, 0.5 * (rest + lean), 0.5 * (rest - lean)])
        return locations, scores / np.abs(_ratio(link, locations, labels))

    def residual(unknown: Array64) -> Array64:
        locations, masses = kinds(unknown)
        steps = (locations - moments.centre) / moments.spread
        found = np.array([masses.sum(), masses @ steps, masses @ np.square(steps)]) / moments.n - [1.0, 0.0, 1.0]
        return np.nan_to_num(found, nan=1e6, posinf=1e6, neginf=-1e6)

    start = np.array([0.0, -0.5 * np.log(1 - share), np.log(share * max(up, down))])
    solution = scipy.optimize.root(residual, start, tol=1e-14).x
    locations, masses = kinds(solution)
    if np.max(np.abs(residual(solution))) > _RESIDUAL:
        return None
    return _spread_out(link, locations, labels, masses, size)


def _spread_out(link: Link, locations: Array64, labels: Array64, masses: Array64, size: int) -> Scalars | None:
    """Each kind's mass on several points, so that all weigh about the same; None unless every mass is sane."""
    total = float(np.sum(masses))
    if not np.all(masses > 1e-9 * total) or np.max(np.abs(locations)) > FARTHEST:
        return None
    counts = counts_of(masses / total, size)
    kind = np.repeat(np.arange(len(masses)), counts)
    return Scalars(locations[kind], (masses / counts)[kind], _ratio(link, locations, labels)[kind])


def counts_of(shares: Array64, size: int) -> NDArray[np.int64]:
    """Whole numbers that sum to ``size``, at least one each if it allows that, the heaviest as light as may be."""
    counts = (np.arange(len(shares)) < size).astype(np.int64)
    for _ in range(size - len(shares)):
        counts[np.argmax(shares / counts)] += 1
    return counts
